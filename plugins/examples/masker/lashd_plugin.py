"""lashd plugins in Python. Copy this file next to yours. It needs Python 3.9 and no other packages.

    from lashd_plugin import Plugin, deny

    plugin = Plugin()

    @plugin.hook("beforeToolCall")
    def guard(call, context):
        if context["tool"] == "shell" and "rm -rf" in context["args"].get("command", ""):
            return deny("not here")

    plugin.run()

Everything that plugin.json declares needs a handler, and each handler a declaration. Otherwise lashd rejects the plugin and logs
the differences. Each handler runs in its own thread; handlers of several sessions run at once. Protect shared data with a lock,
and session data with session.lock. print() writes to the plugin's log. An exception fails its call. Contexts are protocol JSON,
typed below. docs/plugin-reference.md describes the hooks, docs/plugin-protocol.md the messages.
"""
from __future__ import annotations

import base64, contextlib, itertools, json, os, queue, threading, time, traceback
from typing import Any, Callable, Dict, Generic, Iterator, List, Optional, Sequence, Tuple, TypedDict, TypeVar, Union, cast

PROTOCOL_VERSION = 1
MAX_MESSAGE = 8 << 20  # bytes; lashd ends a plugin that sends a longer message
MAX_PART = 4 << 20  # bytes of values of code cells in one message
MAX_INLINE = 1 << 20  # bytes of artifacts in one message; larger ones are sent in pieces

Json = Any
Object = Dict[str, Json]
Directive = Object
S = TypeVar("S")

# Contexts of hooks. Every field may be absent.
View = TypedDict("View", {"session": Object, "window": int, "turnOptions": Json}, total=False)
ToolCallContext = TypedDict("ToolCallContext", {  # beforeToolCall: a call before it runs
    "turnId": str, "callId": str, "parent": str, "tool": str, "kind": str, "replay": str, "serial": bool, "cell": bool, "args": Json,
}, total=False)
class ToolResultContext(ToolCallContext, total=False):  # afterToolCall, projectToolResult: a call after it ran
    attempt: int
    output: Object
    durationMs: int
TurnContext = TypedDict("TurnContext", {  # beforeTurn; prompt (no input); checkpoint (kind is afterWork or beforeCompletion)
    "turnId": str, "view": View, "input": List[Object], "inputs": Object, "kind": str}, total=False)
TurnSummary = TypedDict("TurnSummary", {"turnId": str, "report": Object, "window": int, "context": int}, total=False)  # afterTurn
StreamChunk = TypedDict("StreamChunk", {  # assistantStream: a piece of streamed text
    "text": str, "reasoning": List[str], "events": List[Object], "abort": bool}, total=False)
Response = TypedDict("Response", {"parts": List[Object], "stop": str, "events": List[Object]}, total=False)  # assistantResponse
PreparedContext = TypedDict("PreparedContext", {  # transformContext: the history that the model sees; tools are additional
    "view": View, "messages": List[Object], "prompts": List[Object], "withoutBase": bool, "tools": List[Object]}, total=False)
ConfigChange = TypedDict("ConfigChange", {"previous": Object, "current": Object, "config": Object}, total=False)  # configChanged
CompactRequest = TypedDict("CompactRequest", {"view": View, "instructions": str}, total=False)  # compact
LifecycleEvent = TypedDict("LifecycleEvent", {  # event: turnFinalized, turnPersisted, sessionRestored, sessionConfigChanged
    "kind": str, "report": Object, "view": View, "previous": Object, "current": Object}, total=False)
CatalogContext = TypedDict("CatalogContext", {"sessionId": str, "manifests": List[Object], "authority": Object}, total=False)  # catalog

class PluginError(Exception):
    """Raise it to fail a call with a message, without a traceback in the log."""
    code = -32000
class UnknownError(PluginError):
    """A call of something that does not exist."""
    code = -32601
class HostError(PluginError):
    """lashd rejected a host call, or the call failed. kind is denied, unavailable, invalidParams, ..."""
    def __init__(self, error: Object):
        super().__init__(error.get("message", ""))
        self.kind = str((error.get("data") or {}).get("kind", ""))
class Output(Object):
    """The output of a tool call. control ends or redirects the turn."""
    control: Optional[Object] = None
class Outcome(Object):
    """The result of a command or a task."""

def succeed(text: str = "", value: Json = None, control: Optional[Object] = None) -> Output:
    """Returns a success. The model reads the text, or else the value. control is {"kind": "finish", "value": ...} or similar."""
    out = Output(status="success", text=text) if value is None else Output(status="success", text=text, value=value)
    out.control = control
    return out
def fail(message: str, code: str = "failed", kind: str = "execution", source: str = "plugin") -> Output:
    """Returns a failure; kind is its class."""
    return Output(status="failure", text=message, failure={"class": kind, "code": code, "message": message, "source": source})
def outcome(output: Json = None, events: Sequence[Json] = (), queue: Sequence[Json] = ()) -> Outcome:
    """Returns the result of a command or a task: events are {"type", "body"}, queue has turns, {"input": [...], "sourceKey"}."""
    return Outcome(output=output, events=list(events), queue=list(queue))

def deny(message: str, code: str = "denied") -> Directive:
    """Before a call: deny it. The model reads the message."""
    return short_circuit(fail(message, code, "permissionDenied"))
def short_circuit(output: Output) -> Directive:
    """Before a call: return this output without running it. After a call: replace its output."""
    return {"kind": "short_circuit_tool", "output": output}
def replace_args(args: Json) -> Directive:
    """Before a call: replace its arguments."""
    return {"kind": "replace_tool_args", "args": args}
def ask_first(reason: str, **more: Json) -> Directive:
    """Before a call: require approval. more is deadlineMs, and default, the answer after the deadline: reject or allow."""
    return {"kind": "require_approval", "approval": dict(more, reason=reason)}
def abort(code: str, message: str) -> Directive:
    """End the turn, or fail the call."""
    return {"kind": "abort_turn", "code": code, "message": message}
def enqueue(*messages: Union[str, Object]) -> Directive:
    """Add messages to the conversation. A string is a user message."""
    said = [{"role": "user", "content": m} if isinstance(m, str) else m for m in messages]
    return {"kind": "enqueue_messages", "messages": said}
def create_session(session: Object) -> Directive:
    """Create a session. session has the params of session/new."""
    return {"kind": "create_session", "session": session}
def tell(*events: Object) -> Directive:
    """Send events to clients: {"kind": "status", "key", "label", "detail"} or {"kind": "custom", "name", "payload"}."""
    return {"kind": "emit_runtime_events", "events": list(events)}
def trace(name: str, payload: Json = None) -> Directive:
    """Add a record to the trace."""
    return {"kind": "emit_trace", "trace": {"name": name, "payload": payload}}
def compact() -> Directive:
    """After a turn: compact history before the next one."""
    return {"kind": "compact_history"}
def message_node(text: str, role: str = "user") -> Object:
    """Returns a message node, for the result of the compact hook."""
    return {"message": {"role": role, "parts": [{"kind": "text", "text": text}]}}

class Session(Generic[S]):
    """An open session. lashd stores state and artifacts. Anything else that you put here is lost when the process ends.
    Change state only within changing()."""
    def __init__(self, plugin: Plugin[S], params: Object):
        self._plugin = plugin
        self.instance, self.id, self.parent, self.cwd = (  # no id: an operation without a session
            str(params.get(key, "")) for key in ("instance", "sessionId", "parentSessionId", "cwd"))
        self.options, self.extensions = params.get("options"), params.get("extensions") or {}
        self.tool_access, self.subagent = params.get("toolAccess") or {}, params.get("subagent")
        self.lock = threading.RLock()
        self.state: S = plugin._blank()  # any JSON
        self.artifacts, self.revision = cast(Dict[str, bytes], {}), 0
        self.unsent, self.arriving = cast(Dict[str, bytes], {}), cast(Dict[str, bytes], {})  # values of code cells
        self.sending: Optional[Object] = None  # the change whose values are unsent
        self.tools: List[Object] = []  # of the last code cell; lashd sends them again when they change

    @contextlib.contextmanager
    def changing(self) -> Iterator[S]:
        """Change state within this context manager. It holds session.lock and notifies lashd."""
        with self.lock:
            try:
                yield self.state
            finally:
                self.revision += 1
                self._plugin._tell("snapshot/changed", instance=self.instance, revision=self.revision)
    def tools_changed(self) -> None:
        """Make lashd request the list of tools again."""
        self._plugin._tell("tools/changed", instance=self.instance)

class Call(Generic[S]):
    """A call from lashd."""
    def __init__(self, plugin: Plugin[S], session: Session[S], params: Object, cancelled: threading.Event):
        self._plugin, self.session, self.params = plugin, session, params
        self.cancelled = cancelled  # set when lashd has cancelled the call
        self.turn_id, self.call_id, self.grant = (str(params.get(key, "")) for key in ("turnId", "callId", "grant"))
        self.name: str = params.get("name", "")  # of the tool or the operation
        self.messages: List[Object] = params.get("messages") or []
        self.deadline = time.monotonic() + params.get("deadlineMs", 0) / 1000

    def host(self, method: str, **params: Json) -> Json:
        """Send a request to lashd, such as host("toolCatalog"). docs/plugin-protocol.md lists the methods.
        Raises HostError if lashd rejects it or it fails."""
        return self._plugin._ask("host/" + method, dict(params, grant=self.grant))
    def progress(self, text: str) -> None:
        """Report progress of a tool call."""
        self._plugin._tell("tool/progress", grant=self.grant, text=text)

class Cell(Call[S]):
    """A code cell that runs. If it runs again after a crash, lashd answers as it did the first time."""
    def __init__(self, call: Call[S]):
        super().__init__(call._plugin, call.session, call.params, call.cancelled)
        self.id, self.language, self.source = (str(self.params.get(key, "")) for key in ("cellId", "language", "source"))
        self.accept_finish, self.schema = bool(self.params.get("acceptFinish")), self.params.get("schema")
        if "tools" in self.params:
            self.session.tools = self.params["tools"]
        self.tools: List[Object] = self.session.tools  # manifests
    def call_tools(self, calls: Sequence[Object]) -> List[Output]:
        """Call tools together. Each call is {"name", "args"}; the outputs have the same order."""
        return [Output(o) for o in self.host("callTool", calls=list(calls))["data"]]
    def now(self) -> int:
        """Returns the time in nanoseconds since 1970."""
        return int(self.host("now")["unixNs"])
    def random(self) -> bytes:
        """Returns 32 random bytes."""
        return base64.b64decode(self.host("random")["bytes"])
    def history(self) -> List[Object]:
        """Returns the conversation that the model sees."""
        return self.host("history").get("data") or []

class Plugin(Generic[S]):
    """A plugin. state returns the initial state of a session; leave it out for a plugin without state. state_version is the one
    in plugin.json; upgrade(version, state) converts state of another version. executor runs code cells; all bytes are values of
    globals, by name: describe(call, tools) returns {"language", "guide"}; execute(cell) returns {"printed", "value", "error", ...};
    snapshot(session) returns {"changed", "removed", "globals"} since the last one; restore(session, values) replaces all globals."""
    def __init__(self, state: Optional[Callable[[], S]] = None, state_version: str = "1",
                 upgrade: Optional[Callable[[str, Json], S]] = None, executor: Any = None):
        self._blank: Callable[[], Any] = state or (lambda: None)
        self._version, self._upgrade, self._executor = state_version if state else "", upgrade, executor
        self._handlers: Dict[Tuple[str, str], Callable[..., Any]] = {}  # by kind and name
        self._sessions: Dict[str, Session[S]] = {}  # by instance
        self._calls: Dict[Json, threading.Event] = {}
        self._answers: Dict[str, queue.SimpleQueue[Object]] = {}
        self._ids, self._writing = itertools.count(1), threading.Lock()
        self.id, self.config, self.data_dir = "", None, ""  # set before the first session opens

    def hook(self, name: str) -> Callable[[H], H]:
        """Handle a hook: f(call, context) returns None for no change, or the hook's result: directives, prompt texts, a chunk or
        its text, a reply, an output, settings, nodes, a context, tools to leave out, or prose."""
        return self._handles("hook", name)
    def tool(self, name: str) -> Callable[[H], H]:
        """Run a tool: f(call, args) returns a text, an Output or any other value. "*" runs all tools without their own handler,
        including tools that plugin.json does not declare."""
        return self._handles("tool", name)
    def prepare(self, name: str) -> Callable[[H], H]:
        """Complete the arguments of a tool: f(call, args) returns them."""
        return self._handles("prepare", name)
    def tool_list(self, f: H) -> H:
        """List the tools of a session: f(session) returns all of them, each with name, description and contract."""
        return self._handles("list", "")(f)
    def operation(self, name: str) -> Callable[[H], H]:
        """Handle an operation: f(call, args) returns its output, or the outcome() of a command or a task."""
        return self._handles("operation", name)
    def task(self, name: str) -> Callable[[H], H]:
        """Run tasks that plugin.json names: f(call, task) returns the outcome. When call.cancelled is set, the task must end."""
        return self._handles("task", name)
    def on(self, event: str) -> Callable[[H], H]:
        """Handle an event: "open", "restore" or "close", with the session; "task/signal" or "task/cancel", with the session and
        the params; or "shutdown"."""
        return self._handles("on", event)
    def log(self, level: str, message: str, data: Json = None) -> None:
        """Write to the plugin's log. The level is DEBUG, INFO, WARN or ERROR."""
        self._tell("log", level=level, message=message, data=data)

    def run(self) -> None:
        """Serve until lashd stops the plugin."""
        self._take_stdio()
        for line in self._in:
            if not self._receive(json.loads(line)):
                break
        for cancelled in list(self._calls.values()):
            cancelled.set()
        self._fire("shutdown")
    def _handles(self, kind: str, name: str) -> Callable[[H], H]:
        def keep(f: H) -> H:
            if self._handlers.setdefault((kind, name), f) is not f:
                raise ValueError("two handlers for %s %s" % (kind, name))
            return f
        return keep
    def _find(self, kind: str, name: str) -> Callable[..., Any]:
        handler = self._handlers.get((kind, name)) or self._handlers.get((kind, "*"))
        if handler is None:
            raise UnknownError("there is no %s %s" % (kind, name))
        return handler
    def _fire(self, event: str, *args: Any) -> None:
        self._handlers.get(("on", event), lambda *_: None)(*args)
    def _take_stdio(self) -> None:  # reserve the pipes: other code and child processes write to stderr and read nothing
        self._in, self._out = os.fdopen(os.dup(0), "rb"), os.dup(1)
        os.dup2(2, 1)
        with open(os.devnull) as null:
            os.dup2(null.fileno(), 0)
    def _send(self, message: Object) -> None:
        line = json.dumps(dict(message, jsonrpc="2.0"), separators=(",", ":"), allow_nan=False).encode() + b"\n"
        if len(line) > MAX_MESSAGE:
            raise PluginError("the message has %d bytes, more than %d" % (len(line), MAX_MESSAGE))
        with self._writing:
            while line:
                line = line[os.write(self._out, line):]
    def _tell(self, method: str, **params: Json) -> None:
        self._send({"method": method, "params": params})
    def _ask(self, method: str, params: Object) -> Json:
        key = "p%d" % next(self._ids)
        self._answers[key] = answer = queue.SimpleQueue()
        self._send({"id": key, "method": method, "params": params})
        message = answer.get()
        if "error" in message:
            raise HostError(message["error"])
        return message.get("result")
    def _receive(self, message: Object) -> bool:
        method, params = message.get("method"), message.get("params") or {}
        if method is None:
            self._answers.pop(message["id"]).put(message)
        elif "id" in message:
            self._calls[message["id"]] = cancelled = threading.Event()
            threading.Thread(target=self._answer, args=(message["id"], method, params, cancelled), daemon=True).start()
        elif method == "$/cancelRequest":
            self._calls.get(params.get("id"), threading.Event()).set()
        elif method.startswith("task/"):
            self._fire(method, self._sessions.get(params["instance"]), params)
        elif method == "session/close":
            if params["instance"] in self._sessions:
                self._fire("close", self._sessions.pop(params["instance"]))
        return method != "shutdown"
    def _answer(self, key: Json, method: str, params: Object, cancelled: threading.Event) -> None:
        try:
            self._send({"id": key, "result": self._perform(method, params, cancelled)})
        except PluginError as e:
            self._send({"id": key, "error": {"code": e.code, "message": str(e)}})
        except Exception as e:  # the call always needs an answer
            traceback.print_exc()
            self._send({"id": key, "error": {"code": -32000, "message": "%s: %s" % (type(e).__name__, e)}})
        finally:
            del self._calls[key]
    def _perform(self, method: str, params: Object, cancelled: threading.Event) -> Json:
        if method == "initialize":
            return self._initialize(params)
        name = method[len("hook/"):] if method.startswith("hook/") else ""
        if not name and method not in _METHODS:
            raise UnknownError("unknown method %s" % method)
        if method == "session/open":
            self._sessions[params["instance"]] = Session(self, params)
        session = self._sessions.get(params.get("instance", ""))
        if session is None:
            raise PluginError("%s: there is no instance %r" % (method, params.get("instance")))
        call = Call(self, session, params, cancelled)
        return self._hook(call, name) if name else _METHODS[method](self, call)
    def _initialize(self, params: Object) -> Json:
        if params["protocolVersion"] != PROTOCOL_VERSION:
            raise PluginError("lashd uses protocol version %s, this SDK %s" % (params["protocolVersion"], PROTOCOL_VERSION))
        if wrong := list(self._differs(params.get("contributes") or {})):
            raise PluginError("plugin.json and the program differ: " + "; ".join(wrong))
        self.id, self.config, self.data_dir = params["pluginId"], params.get("config"), params.get("dataDir", "")
        return {key: params[key] for key in ("protocolVersion", "pluginId", "nonce", "contributes")}
    def _differs(self, declared: Object) -> Iterator[str]:
        for kind in ("hook", "tool", "operation", "task"):
            names, mine = declared.get(kind + "s") or [], {name for of, name in self._handlers if of == kind}
            for name in sorted(set(names) ^ (mine - {"*"})):
                if name in mine:
                    yield "the %s %s is not declared" % (kind, name)
                elif kind != "tool" or "*" not in mine:
                    yield "the %s %s has no handler" % (kind, name)
        if declared.get("executor", False) != (self._executor is not None):
            yield "only one of them declares a code executor"
        if declared.get("state", "") != self._version:
            yield "the declared state version is %r, the program has %r" % (declared.get("state", ""), self._version)
    def _hook(self, call: Call[S], name: str) -> Json:
        context = call.params.get("context") or {}
        given = self._find("hook", name)(call, context)
        return _HOOK_ANSWERS.get(name, lambda g, c: {})(given, context)
    def _execute(self, call: Call[S]) -> Json:
        given = self._find("tool", call.name)(call, call.params.get("args"))
        if not isinstance(given, Output):
            given = succeed(given) if isinstance(given, str) else succeed(value=given)
        return {"output": given, "control": given.control} if given.control else {"output": given}
    def _operate(self, call: Call[S]) -> Json:
        given = self._find("operation", call.name)(call, call.params.get("args"))
        return given if isinstance(given, Outcome) else {"output": given}
    def _write(self, call: Call[S]) -> Json:
        with call.session.lock:
            answer = {"revision": call.session.revision, "state": json.loads(json.dumps(call.session.state, allow_nan=False))}
            artifacts = dict(call.session.artifacts)
        if answer["state"] is None:
            del answer["state"]
        if sum(map(len, artifacts.values())) <= MAX_INLINE:
            return dict(answer, artifacts=[{"name": name, "data": _encode(data)} for name, data in artifacts.items()])
        for name, data in artifacts.items():
            for at in range(0, max(len(data), 1), MAX_INLINE):
                call.host("artifactWrite", name=name, offset=at, data=_encode(data[at:at + MAX_INLINE]))
        return answer
    def _restore(self, call: Call[S]) -> Json:
        session, meta = call.session, call.params["meta"]
        state, version = meta.get("state"), meta.get("plugin_version", "")
        if version != self._version:
            if self._upgrade is None:
                raise PluginError("cannot read state of version %r" % version)
            state = self._upgrade(version, state)
        artifacts = {a["name"]: self._fetch(call, a) for a in call.params.get("artifacts") or ()}
        with session.lock:
            session.state = self._blank() if state is None else state
            session.artifacts, session.revision = artifacts, int(meta.get("revision", 0))
        self._fire("restore", session)
        return {}
    def _fetch(self, call: Call[S], artifact: Object) -> bytes:
        data = base64.b64decode(artifact.get("data") or "")
        while len(data) < artifact["size"]:
            data += base64.b64decode(call.host("artifactRead", name=artifact["name"], offset=len(data))["data"])
        return data

    def _snapshot_code(self, call: Call[S]) -> Json:
        session, part, size = call.session, {}, 0
        change = session.sending or self._executor.snapshot(session)
        for name in change.get("removed") or ():
            session.unsent.pop(name, None)
        session.unsent.update(change.pop("changed", None) or {})
        for name in sorted(session.unsent):  # a large change needs several answers
            size += len(session.unsent[name])
            if part and size > MAX_PART:
                break
            part[name] = _encode(session.unsent.pop(name))
        session.sending = change if session.unsent else None
        return dict(change, changed=part, more=bool(session.unsent))
    def _run_cell(self, call: Call[S]) -> Json:
        call.session.sending = None
        return self._executor.execute(Cell(call)) or {}
    def _restore_code(self, call: Call[S]) -> Json:
        session = call.session
        session.arriving.update({name: base64.b64decode(data) for name, data in (call.params.get("values") or {}).items()})
        if not call.params.get("more"):
            values, session.arriving, session.unsent, session.sending = session.arriving, {}, {}, None
            self._executor.restore(session, values)
        return {}

def _encode(data: bytes) -> str: return base64.b64encode(data).decode()
def _list(given: Json) -> List[Json]:
    return [] if given is None else list(given) if isinstance(given, (list, tuple)) else [given]

_HOOK_ANSWERS: Dict[str, Callable[[Any, Any], Json]] = {
    **dict.fromkeys(("beforeTurn", "beforeToolCall", "afterToolCall", "checkpoint", "afterTurn"),
                    lambda g, _: {"directives": _list(g)}),
    "prompt": lambda g, _: {"prompts": [{"slot": "guidance", "content": p} if isinstance(p, str) else p for p in _list(g)]},
    "assistantStream": lambda g, c: c if g is None else {"text": g} if isinstance(g, str) else g,
    "assistantResponse": lambda g, c: c if g is None else g, "catalog": lambda g, _: {"remove": _list(g)},
    "projectToolResult": lambda g, c: {"output": c["output"] if g is None else g},
    "configChanged": lambda g, c: {"config": c["config"] if g is None else g},
    "transformContext": lambda g, c: {k: v for k, v in (c if g is None else g).items() if k != "view"},
    "compact": lambda g, _: {"nodes": _list(g)}, "projectProse": lambda g, c: {"text": c["text"] if g is None else g},
}
_METHODS: Dict[str, Callable[[Plugin[Any], Call[Any]], Json]] = {
    "session/open": lambda p, c: p._fire("open", c.session) or {},
    "snapshot/write": Plugin._write, "snapshot/restore": Plugin._restore, "tool/execute": Plugin._execute,
    "tool/prepare": lambda p, c: {"args": p._handlers.get(("prepare", c.name), lambda _, a: a)(c, c.params.get("args"))},
    "tool/list": lambda p, c: {"data": [dict(t, contract=dict({"replay": "never"}, **t.get("contract") or {}))
                                        for t in p._find("list", "")(c.session)]},
    "operation/query": Plugin._operate, "operation/command": Plugin._operate, "operation/task": Plugin._operate,
    "task/run": lambda p, c: {"outcome": {"kind": "completed", "value": p._find("task", c.name)(c, c.params["task"])}},
    "code/describe": lambda p, c: p._executor.describe(c, c.params.get("tools") or []),
    "code/execute": Plugin._run_cell,
    "code/snapshot": Plugin._snapshot_code, "code/restore": Plugin._restore_code,
}
