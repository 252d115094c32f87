<?php
// SPDX-License-Identifier: GPL-2.0-only
// Writes its call stack as PHP sees it, the innermost function first, and waits in it.
function stack(): string
{
    $text = "fread  0\n"; // of PHP itself: no file, and no line
    $calls = debug_backtrace();
    for ($i = 1; $i <= count($calls); $i++) {
        $of = $calls[$i] ?? ["function" => "{main}"];
        $text .= (isset($of["class"]) ? "$of[class]::" : "") . "$of[function] {$calls[$i - 1]["file"]} {$calls[$i - 1]["line"]}\n";
    }
    return "$text\n";
}

function leaf(): void
{
    fwrite(STDOUT, stack()) && fread(STDIN, 1);
}

class Shop
{
    function sell(): void
    {
        leaf();
    }

    static function open(): void
    {
        (new Shop)->sell();
    }
}

function main(): void
{
    Shop::open();
}

main();
