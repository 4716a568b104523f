"""Wakes a session at a given time. See README.md."""
import time

from lashd_plugin import Plugin, PluginError

plugin = Plugin()


@plugin.tool("remind")
def remind(call, args):
    due = time.time() + args["seconds"]
    task = call.host("taskStart", spec={
        "kind": "other", "label": "reminder: " + args["text"][:80], "recovery": "rerunnable", "maxAttempts": 100, "handler": "remind",
        "payload": {"text": args["text"], "due": due}, "events": [{"name": "due", "wake": {"delivery": "earliestBoundary", "merge": "reminder"}}],
    })["task"]
    return "Reminder set. Cancel task %s if you no longer need it." % task["taskId"]


@plugin.task("remind")
def wait(call, task):
    """Waits until the reminder is due, in any number of attempts. The key makes the event happen once."""
    payload, at = task["spec"]["payload"], {"taskId": task["taskId"]}
    call.host("taskTransition", state="idle", waiting="until it is due", **at)
    if call.cancelled.wait(max(0, payload["due"] - time.time())):
        raise PluginError("cancelled")
    call.host("taskTransition", state="running", **at)
    call.host("taskTell", name="due", payload={"text": payload["text"]}, key="due", **at)
    return payload["text"]


plugin.run()
