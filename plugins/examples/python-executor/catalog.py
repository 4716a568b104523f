"""Tools as functions in modules: their names, signatures, calls and results."""
import keyword, re

TYPES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "array": "list", "object": "dict", "null": "None"}
GUIDE = """Write Python. Globals and functions stay for later cells. The value of the last expression is shown, and so is what print writes.
Modules that need nothing but memory can be imported, such as json, re, math, datetime, random and collections. There are no files.

Tools are functions: tools.list("src") returns a result. result.text is what the tool says, and result.value its data; both are the same
for a tool without data. result.ok and result.error say whether it failed. result.unwrap() returns the value or fails the cell.
parallel([fs.read.later(p) for p in paths]) runs calls at the same time and returns their results in order.
tool.doc is the description of a tool.

finish(value) ends the turn with a value. submit_error(value) fails it. continue_as(task, seed) continues in a new, empty context.
history is the conversation, read-only."""


class ToolError(Exception):
    """A tool failed, and its result was unwrapped."""


class Failure:
    def __init__(self, code, kind, message):
        self.code, self.kind, self.message = code, kind, message

    def __repr__(self):
        return self.message


class Result:
    """The output of a call. value is None if it failed, error is None if not. text is what a model would read."""

    def __init__(self, surface, output):
        failure = output.get("failure")
        self.ok = output.get("status") == "success" and not failure
        value = output.get("value")
        self.value = (output.get("text", "") if value is None else value) if self.ok else None
        f = failure or {}
        message = "%s failed: %s" % (surface, f.get("message") or output.get("text", ""))
        self.text = output.get("text", "") if self.ok else message
        self.error = None if self.ok else Failure(f.get("code", ""), f.get("class", ""), message)

    def __bool__(self):
        return self.ok

    def __repr__(self):
        if not self.ok:
            return "result(ok=False, error=%r)" % self.error
        text = ", text=%r" % self.text if self.text and self.text != self.value else ""
        return "result(ok=True, value=%r%s)" % (self.value, text)

    def unwrap(self):
        if not self.ok:
            raise ToolError(self.error.message)
        return self.value


class Module:
    """The tools whose names begin with the name of the module."""


class Call:
    """A call that has not been made."""

    def __init__(self, tool, args):
        self.tool, self.args = tool, args


class Tool:
    """A tool as a function. call makes a list of calls and returns their results."""

    def __init__(self, surface, manifest, call):
        self.surface, self.name, self.call = surface, manifest["name"], call
        schema = manifest.get("input") or {}
        required, self.properties = schema.get("required") or [], schema.get("properties") or {}
        self.params = list(required) + [p for p in self.properties if p not in required]
        self.required = required
        self.open = schema.get("additionalProperties", not self.properties) is not False
        self.doc = surface + self.signature() + "\n" + manifest.get("description", "")

    def __repr__(self):
        return "<tool %s>" % self.surface

    def signature(self):
        parts = []
        for name in self.params:
            p = self.properties.get(name) or {}
            kind = TYPES.get(p.get("type")) if isinstance(p.get("type"), str) else None
            end = "" if name in self.required else " = %r" % (p.get("default"),)
            parts.append(name + (": " + kind if kind else "") + end)
        return "(%s)" % ", ".join(parts + (["**kwargs"] if self.open else []))

    def later(self, *args, **named):
        """Returns a call for parallel."""
        if len(args) > len(self.params):
            raise TypeError("%s takes at most %d positional arguments; its signature is %s%s" % (self.surface, len(self.params), self.surface, self.signature()))
        for name, value in zip(self.params, args):
            if name in named:
                raise TypeError("%s got two values for the argument %s" % (self.surface, name))
            named[name] = value
        for name in named:
            if name not in self.params and not self.open:
                raise TypeError("%s has no argument %s; its signature is %s%s" % (self.surface, name, self.surface, self.signature()))
        for name in self.required:
            if name not in named:
                raise TypeError("%s needs the argument %s; its signature is %s%s" % (self.surface, name, self.surface, self.signature()))
        return Call(self, {n: named[n] for n in sorted(named) if named[n] is not None or n in self.required})

    def __call__(self, *args, **named):
        return self.call([self.later(*args, **named)])[0]


def identifier(name):
    name = re.sub(r"[^0-9A-Za-z_]", "_", name)
    if not name or name[0].isdigit():
        return "_" + name
    return name + "_" if keyword.iskeyword(name) else name


def bind(manifests, call, reserved=()):
    """Returns the tools by their names in code, and the modules that have them."""
    tools, modules = {}, {}
    for manifest in sorted(manifests, key=lambda m: m["name"]):
        full = (manifest.get("bindings") or {}).get("rlm") or manifest["name"]
        if full.startswith("mcp__"):
            full = full[len("mcp__"):].replace("__", ".", 1)
        module, _, name = full.rpartition(".") if full.count(".") < 2 else full.partition(".")
        module, name = identifier(module or "tools"), identifier(name)
        if module in reserved:
            module += "_"
        first, n = name, 2
        while module + "." + name in tools:
            name, n = "%s_%d" % (first, n), n + 1
        tool = tools[module + "." + name] = Tool(module + "." + name, manifest, call)
        setattr(modules.setdefault(module, Module()), name, tool)
    return tools, modules


def guide(manifests):
    tools, _ = bind(manifests, None)
    lines = [name + tool.signature() + "  # " + tool.doc.partition("\n")[2].partition("\n")[0][:160] for name, tool in sorted(tools.items())]
    return GUIDE + ("\n\nTools:\n" + "\n".join(lines) if lines else "")
