import { strict as assert } from "node:assert";
import { readable } from "../../src/model/contrast";

describe("part/13 a color of a theme on its background", () => {
  it("stays if it has the contrast of WCAG AA, and gets as much of the foreground as it needs otherwise", () => {
    assert.equal(readable("#CE9178", "#000000", "#FFFFFF"), "#ce9178");
    assert.equal(readable("#000080", "#000000", "#ffffff"), "#8080c0"); // half of it: 5.8; with 40 per cent it is 4.1
    assert.equal(readable("#000080", "#ffffff", "#000000"), "#000080");
    assert.equal(readable("#eeeeee80", "#ffffff", "#777777"), "#777777"); // no mixture has it, so the foreground is the best
  });

  it("stays if a color is not known", () => {
    assert.deepEqual([readable("red", "#000000", "#ffffff"), readable("#000080", "", "#ffffff")], ["red", "#000080"]);
  });
});
