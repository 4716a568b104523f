import { strict as assert } from "node:assert";
import { placeOfNew } from "../../src/chat/place";

describe("part15 the place of new chats", () => {
  it("30 is where the user moved one last, until the setting changes", () => {
    assert.equal(placeOfNew(undefined, "editor"), "editor");
    assert.equal(placeOfNew({ place: "sideBar", setting: "editor" }, "editor"), "sideBar");
    assert.equal(placeOfNew({ place: "editor", setting: "sideBar" }, "sideBar"), "editor");
    assert.equal(placeOfNew({ place: "editor", setting: "editor" }, "sideBar"), "sideBar");
  });
});
