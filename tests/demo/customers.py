# SPDX-License-Identifier: GPL-2.0-only
"""customers.py SOCKET: two customers, who ask the shop 100 times a second each."""
import socket
import sys
import threading
import time


def ask_often():
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(sys.argv[1])
    shop = connection.makefile("rw")
    item = 0
    while True:
        shop.write(f"{item}\n")
        shop.flush()
        shop.readline()
        item += 1
        time.sleep(0.01)


for _ in range(2):
    threading.Thread(target=ask_often).start()
