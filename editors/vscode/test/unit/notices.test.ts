import { strict as assert } from "node:assert";
import type { ToWebview } from "../../src/chat/messages";
import { Notices } from "../../src/chat/notices";

describe("part13/27 the notices of a chat", () => {
  it("end with the button that the user chooses, and are shown again on a new page until then", async () => {
    const posted: ToWebview[] = [];
    const notices = new Notices((message) => posted.push(message));
    const first = notices.show("Restored 1 file.", ["Revert"]);
    const second = notices.show("/init has run.", []);
    notices.end(1, "Revert");
    notices.showAgain();
    assert.deepEqual(posted.map((message) => "text" in message && message.text), ["Restored 1 file.", "/init has run.", "/init has run."]);
    notices.close();
    assert.deepEqual([await first, await second], ["Revert", undefined]);
  });
});
