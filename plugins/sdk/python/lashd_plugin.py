"""Plugins of lashd in Python. Copy this file beside yours: it needs Python 3.9 and nothing else.

    from lashd_plugin import Plugin, deny

    plugin = Plugin()

    @plugin.hook("beforeToolCall")
    def guard(call, context):
        if context["tool"] == "shell" and "rm -rf" in context["args"].get("command", ""):
            return deny("not here")

    plugin.run()

What plugin.json declares must have a handler here, and the other way round; otherwise the plugin is not used, and its log
says what differs. Handlers run in threads of their own, those of several sessions at once: what they share is guarded by
locks, what belongs to a session by session.lock. What is printed goes to the log of the plugin. An exception is the answer
of its call, as an error. Contexts are the JSON of the protocol, typed below; docs/plugins.md tells what each hook may do.
"""
from __future__ import annotations

import base64, contextlib, itertools, json, os, queue, threading, time, traceback
from typing import Any, Callable, Dict, Generic, Iterator, List, Optional, Sequence, Tuple, TypedDict, TypeVar, Union, cast

PROTOCOL_VERSION = 1
MAX_MESSAGE = 8 << 20  # bytes of a message; a longer one would end the plugin
MAX_INLINE = 1 << 20  # bytes of artifacts in one message; more of them are sent in pieces

Json = Any
Object = Dict[str, Json]
Directive = Object
S = TypeVar("S")

# Contexts of hooks, of which a field may be absent.
View = TypedDict("View", {"session": Object, "window": int, "turnOptions": Json}, total=False)
ToolCallContext = TypedDict("ToolCallContext", {  # beforeToolCall: a call that is about to run
    "turnId": str, "callId": str, "parent": str, "tool": str, "kind": str, "replay": str, "serial": bool, "args": Json,
}, total=False)
class ToolResultContext(ToolCallContext, total=False):  # afterToolCall, projectToolResult: a call that has run
    attempt: int
    output: Object
    durationMs: int
TurnContext = TypedDict("TurnContext", {  # beforeTurn; prompt, without input; checkpoint, with kind: afterWork, beforeCompletion
    "turnId": str, "view": View, "input": List[Object], "inputs": Object, "kind": str}, total=False)
TurnSummary = TypedDict("TurnSummary", {"turnId": str, "report": Object, "window": int, "context": int}, total=False)  # afterTurn
StreamChunk = TypedDict("StreamChunk", {  # assistantStream: a piece of text that comes in
    "text": str, "reasoning": List[str], "events": List[Object], "abort": bool}, total=False)
Response = TypedDict("Response", {"parts": List[Object], "stop": str, "events": List[Object]}, total=False)  # assistantResponse
PreparedContext = TypedDict("PreparedContext", {  # transformContext: what the model sees of the past; tools are added
    "view": View, "messages": List[Object], "prompts": List[Object], "withoutBase": bool, "tools": List[Object]}, total=False)
ConfigChange = TypedDict("ConfigChange", {"previous": Object, "current": Object, "config": Object}, total=False)  # configChanged
CompactRequest = TypedDict("CompactRequest", {"view": View, "instructions": str}, total=False)  # compact
LifecycleEvent = TypedDict("LifecycleEvent", {  # event: turnFinalized, turnPersisted, sessionRestored, sessionConfigChanged
    "kind": str, "report": Object, "view": View, "previous": Object, "current": Object}, total=False)
CatalogContext = TypedDict("CatalogContext", {"sessionId": str, "manifests": List[Object], "authority": Object}, total=False)  # catalog

class PluginError(Exception):
    """Fails a call with a message, without a traceback in the log."""
    code = -32000
class UnknownError(PluginError):
    """A call of what there is not."""
    code = -32601
class HostError(PluginError):
    """What lashd answers a call that it refuses, or that fails. kind is denied, unavailable, invalidParams, ..."""
    def __init__(self, error: Object):
        super().__init__(error.get("message", ""))
        self.kind = str((error.get("data") or {}).get("kind", ""))
class Output(Object):
    """What a call of a tool came to; control ends or redirects the turn."""
    control: Optional[Object] = None
class Outcome(Object):
    """What a command or a task came to."""

def succeed(text: str = "", value: Json = None, control: Optional[Object] = None) -> Output:
    """A success: the model reads the text, or else the value. control is {"kind": "finish", "value": ...} and the like."""
    out = Output(status="success", text=text) if value is None else Output(status="success", text=text, value=value)
    out.control = control
    return out
def fail(message: str, code: str = "failed", kind: str = "execution", source: str = "plugin") -> Output:
    """A failure, of the class kind."""
    return Output(status="failure", text=message, failure={"class": kind, "code": code, "message": message, "source": source})
def outcome(output: Json = None, events: Sequence[Json] = (), queue: Sequence[Json] = ()) -> Outcome:
    """What a command or a task came to: events are {"type", "body"}, queue is turns, {"input": [...], "sourceKey"}."""
    return Outcome(output=output, events=list(events), queue=list(queue))

def deny(message: str, code: str = "denied") -> Directive:
    """Before a call: it does not run, and the model reads why."""
    return short_circuit(fail(message, code, "permissionDenied"))
def short_circuit(output: Output) -> Directive:
    """Before a call: a result without a run. After it: another result."""
    return {"kind": "short_circuit_tool", "output": output}
def replace_args(args: Json) -> Directive:
    """Before a call: other arguments."""
    return {"kind": "replace_tool_args", "args": args}
def ask_first(reason: str, **more: Json) -> Directive:
    """Before a call: a person is asked. more is deadlineMs, and default, what a passed deadline means: reject or allow."""
    return {"kind": "require_approval", "approval": dict(more, reason=reason)}
def abort(code: str, message: str) -> Directive:
    """Ends the turn, or fails the call."""
    return {"kind": "abort_turn", "code": code, "message": message}
def enqueue(*messages: Union[str, Object]) -> Directive:
    """Lets messages into the conversation; a string is one of a user."""
    said = [{"role": "user", "content": m} if isinstance(m, str) else m for m in messages]
    return {"kind": "enqueue_messages", "messages": said}
def create_session(session: Object) -> Directive:
    """Creates a session beside this one; session is what session/new takes."""
    return {"kind": "create_session", "session": session}
def tell(*events: Object) -> Directive:
    """Tells observers: {"kind": "status", "key", "label", "detail"} or {"kind": "custom", "name", "payload"}."""
    return {"kind": "emit_runtime_events", "events": list(events)}
def trace(name: str, payload: Json = None) -> Directive:
    """Adds a record to the trace."""
    return {"kind": "emit_trace", "trace": {"name": name, "payload": payload}}
def compact() -> Directive:
    """After a turn: history is compacted before the next one."""
    return {"kind": "compact_history"}
def message_node(text: str, role: str = "user") -> Object:
    """A message, as compact answers with."""
    return {"message": {"role": role, "parts": [{"kind": "text", "text": text}]}}

class Session(Generic[S]):
    """The plugin in a session, from when it is opened until it is closed. state and artifacts are what lashd keeps; whatever
    else is put here is gone with the process."""
    def __init__(self, plugin: Plugin[S], params: Object):
        self._plugin = plugin
        self.instance, self.id, self.parent, self.cwd = (  # without an id it is for operations that need no session
            str(params.get(key, "")) for key in ("instance", "sessionId", "parentSessionId", "cwd"))
        self.options, self.extensions = params.get("options"), params.get("extensions") or {}
        self.tool_access, self.subagent = params.get("toolAccess") or {}, params.get("subagent")
        self.lock = threading.RLock()
        self.state: S = plugin._blank()  # any JSON
        self.artifacts, self.revision = cast(Dict[str, bytes], {}), 0

    @contextlib.contextmanager
    def changing(self) -> Iterator[S]:
        """Whoever changes state does so within this: lashd is told, and nobody else looks meanwhile."""
        with self.lock:
            try:
                yield self.state
            finally:
                self.revision += 1
                self._plugin._tell("snapshot/changed", instance=self.instance, revision=self.revision)
    def tools_changed(self) -> None:
        """Has lashd ask for the list of tools again."""
        self._plugin._tell("tools/changed", instance=self.instance)

class Call(Generic[S]):
    """A call of lashd, while it is answered."""
    def __init__(self, plugin: Plugin[S], session: Session[S], params: Object, cancelled: threading.Event):
        self._plugin, self.session, self.params = plugin, session, params
        self.cancelled = cancelled  # set when nobody waits for the answer any more
        self.turn_id, self.call_id, self.grant = (str(params.get(key, "")) for key in ("turnId", "callId", "grant"))
        self.name: str = params.get("name", "")  # of the tool, or the operation
        self.messages: List[Object] = params.get("messages") or []
        self.deadline = time.monotonic() + params.get("deadlineMs", 0) / 1000

    def host(self, method: str, **params: Json) -> Json:
        """Asks lashd for what this call is granted, such as host("toolCatalog"). docs/plugins.md has the methods.
        A HostError says why it does not do it."""
        return self._plugin._ask("host/" + method, dict(params, grant=self.grant))
    def progress(self, text: str) -> None:
        """Shows how far the call of a tool has come."""
        self._plugin._tell("tool/progress", grant=self.grant, text=text)

class Plugin(Generic[S]):
    """A plugin. state makes what a new session keeps, if it keeps anything; state_version is as plugin.json says, and
    upgrade(version, state) reads the state of another one. executor runs code cells: execute(call, source) gives {"printed",
    "value", "error"}, snapshot(session) bytes, and restore(session, bytes) takes them back."""
    def __init__(self, state: Optional[Callable[[], S]] = None, state_version: str = "1",
                 upgrade: Optional[Callable[[str, Json], S]] = None, executor: Any = None):
        self._blank: Callable[[], Any] = state or (lambda: None)
        self._version, self._upgrade, self._executor = state_version if state else "", upgrade, executor
        self._handlers: Dict[Tuple[str, str], Callable[..., Any]] = {}  # by kind and name
        self._sessions: Dict[str, Session[S]] = {}  # by instance
        self._calls: Dict[Json, threading.Event] = {}
        self._answers: Dict[str, queue.SimpleQueue[Object]] = {}
        self._ids, self._writing = itertools.count(1), threading.Lock()
        self.id, self.config, self.data_dir = "", None, ""  # good once a session is opened

    def hook(self, name: str) -> Callable[[H], H]:
        """Handles a hook: f(call, context) gives None, and all is as it was, or directives; texts for the prompt; the chunk or
        its text; the reply; the output; the settings; nodes; what the model sees; tools to leave out; or prose."""
        return self._handles("hook", name)

    def tool(self, name: str) -> Callable[[H], H]:
        """Runs a tool: f(call, args) gives a text, an Output, or any other value. "*" runs tools without a handler of their
        own, as those are that are not declared."""
        return self._handles("tool", name)

    def prepare(self, name: str) -> Callable[[H], H]:
        """Completes the arguments of a tool: f(call, args) gives them."""
        return self._handles("prepare", name)

    def tool_list(self, f: H) -> H:
        """Says which tools there are: f(session) gives all of them, each with name, description, contract."""
        return self._handles("list", "")(f)

    def operation(self, name: str) -> Callable[[H], H]:
        """Answers an operation: f(call, args) gives its output, or the outcome() of a command or a task."""
        return self._handles("operation", name)
    def task(self, name: str) -> Callable[[H], H]:
        """Works at tasks that plugin.json names: f(call, task) gives what the task comes to. call.cancelled says that it shall end."""
        return self._handles("task", name)
    def on(self, event: str) -> Callable[[H], H]:
        """Is told of "open", "restore" and "close", with the session; of "task/signal" and "task/cancel", with that and what is
        said of a task; and of "shutdown"."""
        return self._handles("on", event)
    def log(self, level: str, message: str, data: Json = None) -> None:
        """Adds to the log of the plugin, with the level DEBUG, INFO, WARN or ERROR."""
        self._tell("log", level=level, message=message, data=data)

    def run(self) -> None:
        """Serves until lashd is done with the plugin."""
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

    def _take_stdio(self) -> None:  # the pipes are for this file alone: others, and children, write to stderr and read nothing
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
        except Exception as e:  # whatever it is, somebody waits for an answer
            traceback.print_exc()
            self._send({"id": key, "error": {"code": -32000, "message": "%s: %s" % (type(e).__name__, e)}})
        finally:
            del self._calls[key]

    def _perform(self, method: str, params: Object, cancelled: threading.Event) -> Json:
        if method == "initialize":
            return self._initialize(params)
        name = method[len("hook/"):] if method.startswith("hook/") else ""
        if not name and method not in _METHODS:
            raise UnknownError("there is no method %s" % method)
        if method == "session/open":
            self._sessions[params["instance"]] = Session(self, params)
        session = self._sessions.get(params.get("instance", ""))
        if session is None:
            raise PluginError("%s: there is no instance %r" % (method, params.get("instance")))
        call = Call(self, session, params, cancelled)
        return self._hook(call, name) if name else _METHODS[method](self, call)

    def _initialize(self, params: Object) -> Json:
        if params["protocolVersion"] != PROTOCOL_VERSION:
            raise PluginError("lashd speaks version %s of the protocol" % params["protocolVersion"])
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
            yield "one of them runs code cells, and the other does not"
        if declared.get("state", "") != self._version:
            yield "the version of the state that is declared is %r, not %r" % (declared.get("state", ""), self._version)

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
                raise PluginError("state of the version %r cannot be read" % version)
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
    "code/execute": lambda p, c: p._executor.execute(c, c.params["source"]) or {},
    "code/snapshot": lambda p, c: {"state": _encode(p._executor.snapshot(c.session))}, 
    "code/restore": lambda p, c: p._executor.restore(c.session, base64.b64decode(c.params.get("state") or "")) or {},
}
