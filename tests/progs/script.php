<?php
// SPDX-License-Identifier: GPL-2.0-only
/*
 * script.php TRUTH KIND...: known work in known functions. Prints "ready", waits for a line, works, and writes to the
 * file TRUTH what its call stacks were, as PHP itself sees them, and the CPU time in each: JSON, {"CHAIN": SECONDS},
 * where CHAIN is FUNCTION:LINE;... from the outermost one on, without the line of the innermost function, which is
 * spin(), and of those that are written in C. As a page of a web server: ?truth=TRUTH&kinds=KIND,...
 */

$truth = [];

function cpu_time(): float
{
	$used = getrusage();
	return $used["ru_utime.tv_sec"] + $used["ru_stime.tv_sec"] +
		($used["ru_utime.tv_usec"] + $used["ru_stime.tv_usec"]) / 1e6;
}

function name_of(array $frame): string
{
	$name = $frame["function"];
	if (!isset($frame["class"]))
		return in_array($name, ["include", "include_once", "require", "require_once"])
			? "include " . basename($frame["args"][0]) : $name;
	if (str_starts_with($name, "{closure:"))
		return $name;
	return explode("\0", $frame["class"])[0] . "::" . $name;
}

function spin(int $ms): void
{
	global $truth;
	$frames = debug_backtrace();
	$chain = "spin";
	foreach ($frames as $i => $frame) {
		$caller = $i + 1 < count($frames) ? name_of($frames[$i + 1]) : "{main}";
		$chain = $caller . (isset($frame["line"]) ? ":" . $frame["line"] : "") . ";" . $chain;
	}
	$used = 0;
	$before = cpu_time();
	while ($used < $ms / 1000) {
		for ($i = 0; $i < 500; $i++)
			;
		$now = cpu_time();
		// Where the machine stands still, all ticks that are due may be one.
		$used += $now - $before < 1e-3 ? $now - $before : 1e-3;
		$before = $now;
	}
	$truth[$chain] = ($truth[$chain] ?? 0) + $used;
}

// --- Methods ---

trait Counted
{
	function count_up()
	{
		spin(10);
	}
}

class Shop
{
	use Counted;

	function sell()
	{
		spin(20);
	}

	static function open()
	{
		spin(20);
	}

	static function create()
	{
		return new static();
	}

	function __get($name)
	{
		spin(10);
		return 1;
	}

	function __call($name, $arguments)
	{
		spin(10);
	}

	static function __callStatic($name, $arguments)
	{
		spin(10);
	}

	function __invoke()
	{
		spin(10);
	}

	function __toString()
	{
		spin(10);
		return "shop";
	}
}

class Bakery extends Shop
{
	use Counted;

	function __construct()
	{
		spin(10);
	}

	function sell()
	{
		parent::sell();
		spin(10);
	}

	function __destruct()
	{
		spin(10);
	}
}

function methods()
{
	$shop = new Shop();
	$shop->sell();
	Shop::open();
	$shop->count_up();
	$shop->price;
	$shop->unknown(1);
	Shop::unknown(1);
	$shop();
	$text = "a $shop";
	$bakery = Bakery::create();
	$bakery->sell();
	$bakery->count_up();
	$bakery::open();
	$bakery = null;
	$unnamed = new class {
		function work()
		{
			spin(10);
		}
	};
	$unnamed->work();
	if (PHP_VERSION_ID >= 80400)
		hooks();
}

function hooks()
{
	$hooked = eval('return new class {
		public int $price {
			get {
				spin(10);
				return 1;
			}
			set {
				spin(10);
			}
		}
	};');
	$hooked->price = $hooked->price;
}

class Scope
{
	function closure()
	{
		return function () {
			spin(10);
		};
	}
}

class OtherScope
{
}

function unnamed()
{
	(function () {
		spin(10);
	})();
	(fn() => spin(10))();
	(static fn() => spin(10))();
	$closure = (new Scope())->closure();
	$closure();
	Closure::bind($closure, null, OtherScope::class)();
	$closure();
	(new Shop())->sell(...)();
	$callable = work_of_callable(...);
	$callable();
	Closure::fromCallable("work_of_callable")();
}

function work_of_callable()
{
	spin(10);
}

function überweisen()
{
	spin(20);
}

function 計算()
{
	spin(20);
}

function names()
{
	überweisen();
	計算();
	$name = str_repeat("long", 60);
	if (!function_exists($name))
		eval("function $name() { spin(20); }");
	$name();
	if (!function_exists("Made\\Space\\work"))
		eval('namespace Made\Space; class Room { function work() { spin(20); } }
			function work() { \spin(20); (new Room())->work(); (fn() => \spin(10))(); }');
	Made\Space\work();
}

// --- One function in another ---

function recurse(int $n)
{
	if ($n)
		recurse($n - 1);
	else
		spin(30);
}

function recursion()
{
	recurse(6);
}

function descend(int $n)
{
	if ($n)
		return descend($n - 1);
	spin(100);
}

function innermost_generator()
{
	spin(10);
	yield 1;
	spin(10);
}

function inner_generator()
{
	spin(10);
	yield from innermost_generator();
	yield 2;
}

function middle_generator()
{
	yield from inner_generator();
	spin(10);
}

function outer_generator()
{
	yield 0;
	yield from middle_generator();
	$sent = yield 3;
	spin(10);
}

function generators()
{
	foreach (outer_generator() as $value)
		spin(5);
	$generator = outer_generator();
	$generator->current();
	$generator->next();
	while ($generator->valid())
		$generator->send(1);
	iterator_to_array(outer_generator(), false);
	[...outer_generator()];
	(function () {
		spin(10);
		yield 1;
	})()->current();
}

function in_fiber(int $n)
{
	spin(10);
	Fiber::suspend($n);
	spin(10);
	array_map(function ($x) {
		Fiber::suspend($x);
		spin(10);
	}, [1, 2]);
}

function resume_fiber(Fiber $fiber)
{
	$fiber->resume();
}

function fibers()
{
	$fibers = [new Fiber("in_fiber"), new Fiber(fn($n) => in_fiber($n))];
	foreach ($fibers as $fiber)
		$fiber->start(1);
	spin(10);
	while (!$fibers[0]->isTerminated())
		foreach ($fibers as $fiber)
			resume_fiber($fiber);
	$nested = new Fiber(function () {
		$inner = new Fiber("in_fiber");
		$inner->start(2);
		spin(10);
		$inner->resume();
	});
	$nested->start();
}

// --- Functions written in C that call back ---

function compare($a, $b)
{
	spin(5);
	return $a <=> $b;
}

class Items implements IteratorAggregate, ArrayAccess, Countable, JsonSerializable
{
	function getIterator(): Iterator
	{
		spin(5);
		return new ArrayIterator([1]);
	}

	function offsetGet($offset): mixed
	{
		spin(5);
		return 1;
	}

	function offsetSet($offset, $value): void
	{
		spin(5);
	}

	function offsetExists($offset): bool
	{
		spin(5);
		return true;
	}

	function offsetUnset($offset): void
	{
		spin(5);
	}

	function count(): int
	{
		spin(5);
		return 1;
	}

	function jsonSerialize(): mixed
	{
		spin(5);
		return 1;
	}
}

class Walk implements Iterator
{
	private $at = 0;

	function current(): mixed
	{
		spin(5);
		return $this->at;
	}

	function key(): mixed
	{
		return $this->at;
	}

	function next(): void
	{
		spin(5);
		$this->at++;
	}

	function rewind(): void
	{
		spin(5);
	}

	function valid(): bool
	{
		return $this->at < 2;
	}
}

class Heap extends SplHeap
{
	protected function compare($a, $b): int
	{
		spin(5);
		return $a <=> $b;
	}
}

function callbacks()
{
	$numbers = [3, 1, 2];
	usort($numbers, "compare");
	usort($numbers, fn($a, $b) => compare($a, $b));
	array_map(function ($x) {
		spin(5);
		return array_map(fn($y) => spin(5), [$x]);
	}, [1, 2]);
	array_walk($numbers, "visit");
	array_map([new Shop(), "sell"], [1]);
	array_map("Shop::open", [1]);
	preg_replace_callback("/a/", fn($match) => visit(1), "aa");
	call_user_func_array("visit", [1]);
	call_user_func(fn() => call_user_func("visit", 1));
	$items = new Items();
	foreach ($items as $item)
		spin(5);
	$items[1] = $items[2];
	isset($items[3]);
	count($items);
	json_encode([$items]);
	foreach (new Walk() as $item)
		spin(5);
	iterator_to_array(new Walk());
	$heap = new Heap();
	foreach ([1, 2, 3] as $number)
		$heap->insert($number);
	ob_start(fn($buffer) => visit(1) . "");
	ob_end_clean();
	(new ReflectionFunction("visit"))->invoke(1);
	spl_autoload_register("load");
	class_exists("Missing");
	spl_autoload_unregister("load");
}

function visit($x)
{
	spin(5);
}

function load($class)
{
	spin(5);
}

function call_ffi()
{
	$libc = FFI::cdef("void qsort(void *base, size_t n, size_t size, int (*compare)(void *, void *));");
	$libc->qsort(FFI::addr(FFI::new("int[3]")), 3, 4, function ($a, $b) {
		spin(20);
		return 0;
	});
}

// What PHP runs out of code that seldom runs: errors.
function on_error($number, $text)
{
	spin(10);
	return true;
}

function errors()
{
	set_error_handler("on_error");
	$text = "a$missing";
	$number = [1][2];
	$number = "a"[5] ?? 1;
	$text = [] . "";
	trigger_error("made");
	restore_error_handler();
}

class Guard
{
	function __destruct()
	{
		spin(10);
	}
}

function fails()
{
	$guard = new Guard();
	spin(10);
	throw new Exception("made");
}

function exceptions()
{
	try {
		fails();
	} catch (Exception $e) {
		spin(10);
	} finally {
		spin(10);
	}
	try {
		array_map("fails", [1]);
	} catch (Exception $e) {
		spin(10);
	}
	try {
		try {
			fails();
		} finally {
			spin(10);
		}
	} catch (Exception) {
		spin(10);
	}
}

function compiled()
{
	global $directory;
	eval("function_exists('made') or eval('function made()
	{
		spin(20);
	}');

	made();");
	eval("spin(20);");
	file_put_contents("$directory/included.php", "<?php\n\nspin(20);\n\nreturn function () {\n\tspin(10);\n};\n");
	file_put_contents("$directory/outer.php", "<?php\nspin(5);\n(include '$directory/included.php')();\n");
	include "$directory/outer.php";
	(require "$directory/included.php")();
	unlink("$directory/included.php");
	unlink("$directory/outer.php");
}

// --- Time ---

function share_30()
{
	spin(3);
}

function share_70()
{
	spin(7);
}

function shares()
{
	for ($i = 0; $i < 150; $i++) {
		share_30();
		share_70();
	}
}

function with_md5()
{
	$text = str_repeat("x", 1000000);
	for ($i = 0; $i < 100; $i++)
		md5($text);
}

// The compiled expression is code that is made at run time.

function with_pcre()
{
	$text = str_repeat("ab ", 20000);
	for ($i = 0; $i < 200; $i++)
		preg_match_all("/(a|b)+ /", $text);
}

// PHP 8.4 calls it without a frame.
function with_search()
{
	$numbers = range(1, 100000);
	for ($i = 0; $i < 2000; $i++)
		in_array(-1, $numbers, true);
}

function inside()
{
	with_md5();
	with_pcre();
	with_search();
}

function fork()
{
	global $truth, $file;
	spin(50);
	$child = pcntl_fork();
	if ($child == 0) {
		$truth = [];
		child_work();
		exit(0);
	}
	pcntl_waitpid($child, $status);
}

function child_work()
{
	global $truth, $file;
	spin(100);
	file_put_contents("$file.child", json_encode($truth));
}

// --- Code that is freed, whose memory is used again ---

function freed()
{
	for ($i = 0; $i < 50; $i++)
		eval(str_repeat("\n", $i) . "spin(5);");
}

// --- Short calls: many ticks are just before one begins, or just after one has ended ---

class Short
{
	public $n = 1;

	function __destruct()
	{
		$this->n++;
	}
}

function short_compare($a, $b)
{
	return $a <=> $b;
}

function short_generator(int $n)
{
	for ($i = 0; $i < $n; $i++)
		yield $i;
}

function short_calls()
{
	$numbers = range(1, 50);
	shuffle($numbers);
	for ($i = 0; $i < 10000; $i++) {
		$sorted = $numbers;
		usort($sorted, "short_compare");
	}
	for ($i = 0; $i < 1000; $i++)
		foreach (short_generator(1000) as $value)
			;
	for ($i = 0; $i < 1000000; $i++)
		$short = new Short();
}

// --- Waits ---

function sleep_here()
{
	usleep(20000);
}

function waits()
{
	for ($i = 0; $i < 20; $i++)
		sleep_here();
}

const ALL = ["methods", "unnamed", "names", "recursion", "generators", "fibers", "callbacks", "errors", "exceptions",
	"compiled"];

if (PHP_SAPI == "cli") {
	$file = $argv[1];
	$kinds = array_slice($argv, 2);
	echo "ready\n";
	fgets(STDIN);
} else {
	$file = $_GET["truth"];
	$kinds = explode(",", $_GET["kinds"]);
}
$directory = dirname($file);
foreach ($kinds as $kind)
	if ($kind == "all")
		for ($i = 0; $i < 3; $i++)
			foreach (ALL as $function)
				$function();
	else if ($kind == "deep")
		descend(200);
	else
		$kind();
file_put_contents($file, json_encode($truth));
