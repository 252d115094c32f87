# SPDX-License-Identifier: GPL-2.0-only
"""For causes.sh: a small shop for gunicorn, which renders a list for each request and asks PostgreSQL; for some paths it
does what makes a request slow, too. As a program:

	causes.py client PORT SECONDS PATH    four connections ask all the time; each hundredth request is for PATH
	causes.py neighbour CPU               takes a CPU for 0.2 s, every 2 s: as many turns as one in a hundred
"""
import http.client
import os
import sys
import threading
import time

stock_lock = threading.Lock()
local = threading.local()


def query(text):
	if not hasattr(local, "connection"):
		import psycopg2
		local.connection = psycopg2.connect("")
		local.connection.autocommit = True
	with local.connection.cursor() as cursor:
		cursor.execute(text)
		return cursor.fetchall()


def render_list(count):
	return "".join("<li>%d</li>" % (i * i % 97) for i in range(count))


def count_stock():
	"""Has the lock most of the time, as what asks another company's server with it has."""
	while True:
		with stock_lock:
			time.sleep(0.4)
		time.sleep(0.02)


def show_stock():
	with stock_lock:
		return "in stock"


def save_order():
	with open(os.path.join(os.environ["CAUSES_FILES"], "order.%d" % threading.get_native_id()), "wb") as out:
		for _ in range(64):
			out.write(bytes(1 << 20))
		out.flush()
		os.fsync(out.fileno())
	return "saved"


def sum_orders():
	return str(query("select sum(bid * (1 + aid % 7)) from pgbench_accounts, generate_series(1, 4)")[0][0])


slow = {"/stock": show_stock, "/save": save_order, "/sum": sum_orders}


def application(environ, start_response):
	text = render_list(500)
	query("select abalance from pgbench_accounts where aid = %d" % (1 + len(text)))
	if environ["PATH_INFO"] in slow:
		text += slow[environ["PATH_INFO"]]()
	start_response("200 OK", [("Content-Type", "text/html"), ("Content-Length", str(len(text)))])
	return [text.encode()]


def client(port, seconds, path):
	end = time.monotonic() + seconds
	times = []

	def ask(first):
		for number in range(first, 1 << 30):
			if time.monotonic() > end:
				break
			time.sleep(0.005)
			begin = time.monotonic()
			connection = http.client.HTTPConnection("127.0.0.1", port)
			connection.request("GET", path if number % 100 == 99 else "/")
			connection.getresponse().read()
			connection.close()
			times.append(time.monotonic() - begin)

	threads = [threading.Thread(target=ask, args=(25 * i,)) for i in range(4)]
	for thread in threads:
		thread.start()
	for thread in threads:
		thread.join()
	times.sort()
	print("%d requests: median %.1f ms, 99 %% %.1f, longest %.1f" % (len(times), *(1000 * times[int(share * (len(times) - 1))]
		for share in (0.5, 0.99, 1))))


def neighbour(cpu):
	with open("/proc/self/comm", "w") as comm:
		comm.write("neighbour")
	os.sched_setaffinity(0, {cpu})
	os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
	while True:
		time.sleep(2 - time.time() % 2)
		end = time.monotonic() + 0.2
		while time.monotonic() < end:
			pass


if __name__ == "__main__":
	if sys.argv[1] == "client":
		client(int(sys.argv[2]), float(sys.argv[3]), sys.argv[4])
	else:
		neighbour(int(sys.argv[2]))
else:
	threading.Thread(target=count_stock, daemon=True).start()
