"""Runs code cells in Python. Each session has an interpreter process, interpreter.py. If a cell exceeds a limit or is cancelled, the
process is killed, and the next one starts with the globals from before the cell."""
import base64, json, os, queue, subprocess, sys, threading, time

import catalog
from lashd_plugin import HostError, Plugin

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "interpreter.py")


class Interpreter:
    """An interpreter process. messages has what it sends; None is its end."""

    def __init__(self, memory, values):
        self.process = subprocess.Popen([sys.executable, SCRIPT, str(memory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.messages = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()
        self.send({"restore": values})

    def send(self, message):
        try:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            pass  # it has ended, as messages says

    def read(self):
        for line in self.process.stdout:
            self.messages.put(json.loads(line))
        self.messages.put(None)

    def kill(self):
        self.process.kill()
        self.process.wait()


class Executor:
    def describe(self, call, tools):
        return {"language": "python", "guide": catalog.guide(tools)}

    def execute(self, cell):
        s, settings = state(cell.session), plugin.config or {}
        if s.interpreter is None:
            s.interpreter = Interpreter(settings.get("memoryMiB", 512), {n: base64.b64encode(v).decode() for n, v in s.values.items()})
        s.interpreter.send({"cell": {"id": cell.id, "source": cell.source, "tools": cell.tools, "finish": cell.accept_finish, "schema": cell.schema}})
        left = settings.get("seconds", 30)
        while True:
            began = time.monotonic()
            try:
                message = s.interpreter.messages.get(timeout=0.02)
            except queue.Empty:
                message = {}
            left -= time.monotonic() - began  # the clock stands still during requests
            if cell.cancelled.is_set():
                return self.end(s, "the cell was cancelled")
            if message is None:
                return self.end(s, "the interpreter ended, perhaps because the cell used too much memory")
            if "exceeded" in message:
                return self.end(s, message["exceeded"])
            if "done" in message:
                return self.keep(s, message)
            if "ask" in message:
                s.interpreter.send(self.ask(cell, message))
            elif left < 0:
                return self.end(s, "the cell took too long")

    def ask(self, cell, message):
        try:
            return {"answer": cell.host(message["ask"], **message["params"])}
        except HostError as e:
            return {"error": str(e)}

    def end(self, s, reason):
        s.interpreter.kill()
        s.interpreter = None
        return {"error": reason + ". The globals are as they were before the cell."}

    def keep(self, s, message):
        for name, data in message["values"].items():
            s.values[name] = s.changed[name] = base64.b64decode(data)
            s.removed.discard(name)
        for name in message["removed"]:
            s.values.pop(name, None)
            s.changed.pop(name, None)
            s.removed.add(name)
        s.globals = message["globals"]
        return message["done"]

    def snapshot(self, session):
        s = state(session)
        change = {"changed": s.changed, "removed": sorted(s.removed), "globals": s.globals}
        s.changed, s.removed = {}, set()
        return change

    def restore(self, session, values):
        close(session)
        session.cells = State(values)


class State:
    """The globals of a session as of its last cell, and how they differ from the last snapshot."""

    def __init__(self, values):
        self.values, self.changed, self.removed, self.globals, self.interpreter = values, {}, set(), [], None


def state(session):
    return session.__dict__.setdefault("cells", State({}))


plugin = Plugin(executor=Executor())


@plugin.on("close")
def close(session):
    if state(session).interpreter:
        session.cells.interpreter.kill()


plugin.run()
