"""Wakes a session when it is time. README.md tells how it is used."""
import time

from lashd_plugin import Plugin, PluginError

plugin = Plugin()


@plugin.tool("remind")
def remind(call, args):
    due = time.time() + args["seconds"]
    task = call.host("taskStart", spec={
        "kind": "other", "label": "remind of: " + args["text"][:80], "recovery": "rerunnable", "maxAttempts": 100, "handler": "remind",
        "payload": {"text": args["text"], "due": due}, "events": [{"name": "due", "wake": {"delivery": "earliestBoundary", "merge": "reminder"}}],
    })["task"]
    return "You will be reminded. Cancel %s if that is of no use any more." % task["taskId"]


@plugin.task("remind")
def wait(call, task):
    """Waits, in as many attempts as it takes: what it says has a key, so it says it once."""
    payload, at = task["spec"]["payload"], {"taskId": task["taskId"]}
    call.host("taskTransition", state="idle", waiting="until it is due", **at)
    if call.cancelled.wait(max(0, payload["due"] - time.time())):
        raise PluginError("it was cancelled")
    call.host("taskTransition", state="running", **at)
    call.host("taskTell", name="due", payload={"text": payload["text"]}, key="due", **at)
    return payload["text"]


plugin.run()
