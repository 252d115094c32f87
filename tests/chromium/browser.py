# SPDX-License-Identifier: GPL-2.0-only
"""A headless Chromium that does what a person does, through its debugging pipe."""

import base64
import json
import os
import select
import subprocess

CHROMIUM = "chromium"
OPTIONS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
           "--no-first-run", "--disable-background-networking", "--disable-component-update",
           "--disable-sync", "--disable-extensions", "--hide-scrollbars", "--mute-audio",
           "--remote-debugging-pipe"]
PATIENCE = 120  # seconds

KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39,
        "ArrowDown": 40}


class Browser:
    """profile: a directory for its files. All waits end when the browser does, or hangs."""

    def __init__(self, profile):
        there, self.commands = os.pipe()  # its descriptors 3 and 4
        self.answers, back = os.pipe()

        def place():
            # By high numbers, so that neither is closed by the other's dup2().
            high = [os.dup2(there, 100), os.dup2(back, 101)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.process = subprocess.Popen(
            [CHROMIUM, *OPTIONS, "--user-data-dir=" + profile, "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": profile, "XDG_CONFIG_HOME": profile},
            preexec_fn=place, close_fds=False)
        os.close(there)
        os.close(back)
        self.buffer = b""
        self.number = 0
        self.session = None
        self.requests = []  # what the page asked for, itself included
        self.complaints = []  # errors and what the console was told
        self.loaded = False
        targets = self.call("Target.getTargets")["targetInfos"]
        page = [t for t in targets if t["type"] == "page"][0]["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=page,
                                 flatten=True)["sessionId"]
        for domain in "Page", "Runtime", "Network", "Log":
            self.call(domain + ".enable")

    def receive(self):
        while b"\0" not in self.buffer:
            if not select.select([self.answers], [], [], PATIENCE)[0]:
                raise RuntimeError("the browser does not answer")
            piece = os.read(self.answers, 1 << 20)
            if not piece:
                raise RuntimeError("the browser has ended")
            self.buffer += piece
        message, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(message)
        self.note(message.get("method"), message.get("params"))
        return message

    def note(self, method, params):
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(params["exceptionDetails"])
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append(params["args"])
        elif method == "Log.entryAdded":
            self.complaints.append(params["entry"]["text"])
        elif method == "Page.javascriptDialogOpening":
            self.complaints.append("dialog: " + params["message"])
            self.send("Page.handleJavaScriptDialog", accept=False)
        elif method == "Page.loadEventFired":
            self.loaded = True

    def send(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.commands, data):]
        return self.number

    def call(self, method, **params):
        number = self.send(method, **params)
        while True:
            message = self.receive()
            if message.get("id") == number:
                if "error" in message:
                    raise RuntimeError(method + ": " + message["error"]["message"])
                return message["result"]

    def open(self, path, width=1200, height=800, scheme="light", media="", scripts=True):
        """Opens a file in a window of this size and waits until it is there."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", media=media,
                  features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.navigate("about:blank")
        self.requests, self.complaints = [], []
        self.navigate("file://" + os.path.abspath(path))

    def navigate(self, url):
        self.loaded = False
        self.call("Page.navigate", url=url)
        while not self.loaded:
            self.receive()

    def eval(self, expression):
        """The value of a JavaScript expression in the page; a promise's when it is settled."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(json.dumps(result["exceptionDetails"])[:500])
        return result["result"].get("value")

    def click(self, x, y):
        for kind in "mouseMoved", "mousePressed", "mouseReleased":
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left",
                      clickCount=1)

    def move(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def tap(self, x, y):
        self.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def press(self, key, control=False):
        event = {"key": key, "modifiers": 2 if control else 0}
        event["windowsVirtualKeyCode"] = KEYS.get(key) or ord(key.upper())
        if len(key) == 1 and not control:
            event["text"] = key
        elif key == "Enter":
            event["text"] = "\r"
        self.call("Input.dispatchKeyEvent", type="keyDown", **event)
        event.pop("text", None)
        self.call("Input.dispatchKeyEvent", type="keyUp", **event)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def picture(self, path):
        data = self.call("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as out:
            out.write(base64.b64decode(data))

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
        except (RuntimeError, OSError):
            pass  # it may be gone before it has answered
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
