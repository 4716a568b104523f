"""Runs the cells of one session: messages from executor.py on stdin, answers on stdout, both JSON lines."""
import ast, base64, builtins, collections.abc, copy, datetime, io, json, os, pickle, random, resource, sys, textwrap, time, traceback, types

import catalog

PURE = set("""abc array base64 bisect calendar cmath collections colorsys contextlib copy csv dataclasses datetime decimal difflib enum
fractions functools hashlib heapq html io itertools json keyword math numbers operator pprint random re shlex statistics string
struct textwrap time types typing unicodedata zlib""".split())
MAX_PRINTED, MAX_VALUE = 1 << 20, 5 << 20  # bytes


class End(BaseException):
    """finish, submit_error or continue_as has ended the cell."""


class Printed(io.StringIO):
    def write(self, text):
        if self.tell() + len(text) > MAX_PRINTED:
            exceed("the cell printed more than %d bytes" % MAX_PRINTED)
        return super().write(text)


class History(collections.abc.Sequence):
    """The conversation, as copies of its messages. It is requested on first use."""
    def __getitem__(self, at):
        return copy.deepcopy(history()[at])
    def __len__(self):
        return len(history())
    def __repr__(self):
        return repr(history())


class Interpreter:
    def __init__(self):
        self.space = types.ModuleType("cell")
        sys.modules["cell"] = self.space
        self.names, self.saved, self.sources = self.space.__dict__, {}, {}
        self.cell, self.tools, self.asked, self.count = {}, {}, {}, 0
        hidden = {"open", "input", "breakpoint", "exit", "quit", "help"}
        self.builtins = {n: v for n, v in vars(builtins).items() if n not in hidden}
        self.builtins.update(__import__=self.load, parallel=self.parallel, finish=self.finish, submit_error=self.submit_error,
                             continue_as=self.continue_as, history=History())
        self.hidden = set(self.names) | {"__builtins__", "__annotations__"}

    def load(self, name, space=None, *more):
        if space is self.names and name.partition(".")[0] not in PURE:
            raise ImportError("the module %s is not available in cells" % name)
        return __import__(name, space, *more)

    def bind(self, manifests):
        self.tools, modules = catalog.bind(manifests, self.call, self.builtins)
        self.names["__builtins__"] = dict(self.builtins, **modules)

    def call(self, calls):
        answer = ask("callTool", calls=[{"name": c.tool.name, "args": c.args} for c in calls])
        return [catalog.Result(c.tool.surface, o) for c, o in zip(calls, answer["data"])]

    def parallel(self, calls):
        given = list(calls.values() if isinstance(calls, dict) else calls)
        for i, c in enumerate(given):
            if not isinstance(c, catalog.Call):
                raise TypeError("parallel: element %d is not a call; use the method later, as in parallel([tool.later(x), ...])" % i)
        results = self.call(given) if given else []
        return dict(zip(calls, results)) if isinstance(calls, dict) else results

    def finish(self, value=None):
        value = self.final("finish", value)
        wrong = mismatch(self.cell["schema"], value, "the value") if self.cell["schema"] is not None else None
        if wrong:
            raise ValueError("finish: the value does not match the schema: %s; call finish again with a value that does" % wrong)
        self.leave({"kind": "finish", "value": value})

    def submit_error(self, value):
        self.leave({"kind": "fail", "value": self.final("submit_error", value)})

    def final(self, name, value):
        if not self.cell["finish"]:
            raise RuntimeError("%s: this cell cannot end the turn" % name)
        return json.loads(json.dumps(value, allow_nan=False))

    def continue_as(self, task, seed=None):
        frame = {"key": "%s:%d" % (self.cell["id"], sys._getframe(1).f_lineno), "task": task}
        if seed is not None:
            text = seed if isinstance(seed, str) else json.dumps(seed)
            frame["nodes"] = [{"message": {"role": "user", "parts": [{"kind": "text", "text": text}]}}]
        self.leave({"kind": "switchFrame", "frame": frame})

    def leave(self, control):
        self.control = control
        raise End()

    def run(self, cell):
        self.cell, self.control, self.asked, reply = cell, None, {}, {}
        self.bind(cell["tools"])
        self.count += 1
        file, out = "cell %d" % self.count, Printed()
        sys.stdout = out
        try:
            value = self.evaluate(cell["source"], file)
            if value is not None:
                reply["value"] = plain(value)
        except End:
            reply["control"] = self.control
        except MemoryError:
            exceed("the cell used too much memory")
        except BaseException as e:
            reply.update(explain(e, cell["source"], file))
        sys.stdout = sys.__stdout__
        reply["printed"] = out.getvalue()
        self.report(reply)

    def evaluate(self, source, file):
        tree, last = ast.parse(source, file), None
        for node in ast.walk(tree):
            if assigned(node) == "history":
                at = getattr(node, "lineno", 1), getattr(node, "col_offset", 0) + 1
                raise SyntaxError("cannot assign history: it is the conversation, which is read-only", (file, *at, ""))
        self.sources[file] = source
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            last = ast.Expression(tree.body.pop().value)
        exec(compile(tree, file, "exec"), self.names)
        return eval(compile(last, file, "eval"), self.names) if last else None

    def report(self, reply):
        values, unsaved, old = {}, [], self.saved
        shown = {n: v for n, v in self.names.items() if n not in self.hidden}
        self.saved = {}
        for name, value in shown.items():
            try:
                data = self.encode(value)
                if len(data) > MAX_VALUE:
                    raise ValueError("it has %d bytes, more than %d" % (len(data), MAX_VALUE))
                self.saved[name] = data
                if old.get(name) != data:
                    values[name] = data
            except Exception as e:  # any class can fail to be saved
                unsaved.append({"name": name, "reason": str(e) or type(e).__name__})
        removed = [n for n in old if n not in self.saved]
        reply.update(changed=sorted(set(values) | set(removed)), unsaved=unsaved)
        known = [{"name": n, "type": type(v).__name__, "size": len(self.saved.get(n, b""))} for n, v in sorted(shown.items())]
        send({"done": reply, "values": {n: base64.b64encode(v).decode() for n, v in values.items()}, "removed": removed, "globals": known})

    def encode(self, value):
        """A global is a source text, the name of a module, or a pickled value."""
        if isinstance(value, types.ModuleType):
            return b"M" + value.__name__.encode()
        if isinstance(value, catalog.Tool):
            return b"T" + value.surface.encode()
        if isinstance(value, types.FunctionType) and value.__code__.co_filename in self.sources:
            if value.__closure__:
                raise ValueError("the function uses variables of another function")
            text = self.source(value.__code__.co_filename, value.__code__.co_firstlineno, value.__name__)
            return b"S" + json.dumps([value.__name__, text]).encode() + b"\n" + pickle.dumps((value.__defaults__, value.__kwdefaults__), 4)
        if isinstance(value, type) and value.__module__ == "cell":
            for file in reversed(list(self.sources)):
                for node in ast.parse(self.sources[file]).body:
                    if isinstance(node, ast.ClassDef) and node.name == value.__name__:
                        return b"C" + json.dumps([value.__name__, ast.get_source_segment(self.sources[file], node)]).encode()
        return b"P" + pickle.dumps(value, 4)

    def source(self, file, line, name):
        text = self.sources[file]
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef) and node.name == name and line in (node.lineno, *(d.lineno for d in node.decorator_list)):
                return textwrap.dedent(" " * node.col_offset + ast.get_source_segment(text, node))
            if isinstance(node, ast.Lambda) and name == "<lambda>" and node.lineno == line:
                return ast.get_source_segment(text, node)
        raise ValueError("the source of the function is unknown")

    def restore(self, values):
        self.bind([])
        self.saved = {n: base64.b64decode(v) for n, v in values.items()}
        left = sorted(self.saved, key=lambda n: (b"MCSTP".find(self.saved[n][:1]), n))
        while left:  # values can need classes that come later
            failed = []
            for name in left:
                try:
                    self.names[name] = self.decode(name, self.saved[name])
                except Exception as e:
                    failed.append(name)
                    reason = e
            if len(failed) == len(left):
                print("cannot restore %s: %s" % (", ".join(failed), reason), file=sys.stderr)
                return
            left = failed

    def decode(self, name, data):
        tag, data = data[:1], data[1:]
        if tag == b"P":
            return pickle.loads(data)
        if tag == b"M":
            return __import__("importlib").import_module(data.decode())
        if tag == b"T":
            return catalog.Tool(data.decode(), {"name": data.decode()}, self.call)
        head, _, rest = data.partition(b"\n")
        own, text = json.loads(head)
        file = "restored " + name
        self.sources[file] = text
        if own == "<lambda>":
            value = eval(compile(text, file, "eval"), self.names)
        else:
            space = {}
            exec(compile(text, file, "exec"), self.names, space)
            value = space[own]
        if rest:
            value.__defaults__, value.__kwdefaults__ = pickle.loads(rest)
        return value


def assigned(node):
    """Returns the name that a node of the syntax tree sets or removes, or None."""
    if isinstance(node, ast.Name):
        return None if isinstance(node.ctx, ast.Load) else node.id
    return getattr(node, "asname", None) or getattr(node, "name", None)


def plain(value):
    """Returns the value as JSON, or its text."""
    try:
        return json.loads(json.dumps(value, allow_nan=False, default=listed))
    except (TypeError, ValueError):
        return repr(value)


def listed(value):
    if isinstance(value, History):
        return list(value)
    raise TypeError("%s has no JSON form" % type(value).__name__)


def explain(e, source, file):
    """Returns the error with the line of the cell."""
    if isinstance(e, SyntaxError) and e.filename == file:
        message, lines, column = "syntax error: %s" % e.msg, [(e.lineno or 1, "<module>")], e.offset or 1
    else:
        message = str(e) if isinstance(e, catalog.ToolError) else "%s: %s" % (type(e).__name__, e)
        lines = [(f.lineno, f.name) for f in traceback.extract_tb(e.__traceback__) if f.filename == file]
        column = 0
    if not lines:
        return {"error": message[:4000]}
    line = lines[-1][0]
    text = source.split("\n")[line - 1:line] or [""]
    message = "%s\n%5d | %s" % (message[:4000], line, text[0][:200])
    for number, name in reversed(lines[-12:] if len(lines) > 1 else []):
        message += "\n  at line %d" % number + ("" if name == "<module>" else ", in " + name)
    return {"error": message, "position": {"line": line, **({"column": column} if column else {})}}


CHECKS = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "array": list, "object": dict, "null": type(None)}


def mismatch(schema, value, where):
    """Returns how a value differs from a JSON Schema; None if it does not. It knows the common keywords."""
    if not isinstance(schema, dict):
        return None if schema else where + " is not allowed"
    kinds = schema.get("type")
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(isinstance(value, CHECKS[k]) and (k == "boolean" or not isinstance(value, bool)) for k in kinds):
        return "%s is not of type %s" % (where, " or ".join(kinds))
    if "enum" in schema and value not in schema["enum"] or "const" in schema and value != schema["const"]:
        return where + " is not one of the allowed values"
    if isinstance(value, dict):
        for name in schema.get("required", ()):
            if name not in value:
                return "%s has no member %s" % (where, name)
        known = schema.get("properties", {})
        for name, member in value.items():
            wrong = mismatch(known.get(name, schema.get("additionalProperties", True)), member, "%s.%s" % (where, name))
            if wrong:
                return wrong
    for i, element in enumerate(value if isinstance(value, list) else ()):
        wrong = mismatch(schema.get("items", True), element, "%s[%d]" % (where, i))
        if wrong:
            return wrong
    return None


def send(message):
    pipe.write(json.dumps(message).encode() + b"\n")
    pipe.flush()


def exceed(reason):
    """Ends the process, so that the globals are those of before the cell."""
    send({"exceeded": reason})
    os._exit(1)


def ask(method, **params):
    send({"ask": method, "params": params})
    answer = json.loads(sys.__stdin__.buffer.readline())
    if "error" in answer:
        raise RuntimeError(answer["error"])
    return answer["answer"]


def history():
    return me.asked.setdefault("history", None) or me.asked.__setitem__("history", ask("history")["data"]) or me.asked["history"]


class Random(random.Random):
    """Numbers from the bytes of lashd, so that a cell that runs again gets the same."""
    def seeded(self):
        if "random" not in me.asked:
            me.asked["random"] = True
            self.seed(base64.b64decode(ask("random")["bytes"]))
    def random(self):
        self.seeded()
        return super().random()
    def getrandbits(self, k):
        self.seeded()
        return super().getrandbits(k)


def now(): return ask("now")["unixNs"]


class Datetime(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(now() / 1e9, tz)
    @classmethod
    def utcnow(cls):
        return cls.fromtimestamp(now() / 1e9, datetime.timezone.utc).replace(tzinfo=None)


pipe, me = os.fdopen(os.dup(1), "wb"), Interpreter()
os.dup2(2, 1)
source = Random(0)
for each in "random uniform randint randrange choice choices sample shuffle gauss getrandbits".split():
    setattr(random, each, getattr(source, each))
time.time_ns, time.time = now, lambda: now() / 1e9
Datetime.__name__, Datetime.__qualname__, Datetime.__module__ = "datetime", "datetime", "datetime"
datetime.datetime = Datetime
limit = int(sys.argv[1]) << 20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
for line in sys.stdin.buffer:
    message = json.loads(line)
    if "restore" in message:
        me.restore(message["restore"])
    else:
        me.run(message["cell"])
