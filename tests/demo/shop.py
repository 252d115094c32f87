# SPDX-License-Identifier: GPL-2.0-only
"""shop.py SOCKET PRICES: the shop. Answers customers, who ask on SOCKET, with a page of what the service of prices says."""
import socket
import sys
import threading

sys.dont_write_bytecode = True


def ask_price(prices, item):
    prices.write(f"{item}\n")
    prices.flush()
    return float(prices.readline())


def render_row(item, price):
    return "<tr><td>%06d</td><td>%8.2f</td></tr>" % (item, price)


def render_page(item, price):
    rows = [render_row(item + i, price * (1 + i / 100)) for i in range(200)]
    return len("\n".join(rows))


def handle_request(line, prices):
    item = int(line)
    price = ask_price(prices, item)
    return render_page(item, price)


def serve(connection):
    service = socket.socket(socket.AF_UNIX)
    service.connect(sys.argv[2])
    prices = service.makefile("rw")
    customer = connection.makefile("rw")
    try:
        for line in customer:
            customer.write(f"{handle_request(line, prices)}\n")
            customer.flush()
    except ConnectionError:
        pass  # the customer has left before the answer


def main():
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(sys.argv[1])
    listener.listen()
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=serve, args=(connection,), daemon=True).start()


main()
