import { strict as assert } from "node:assert";
import { mock } from "node:test";
import { Throttle } from "../../src/throttle";

describe("part/13 redraws under load", () => {
  beforeEach(() => mock.timers.enable({ apis: ["setTimeout"] }));
  afterEach(() => mock.timers.reset());

  it("happen at once, then once in each interval, and the last change is drawn", () => {
    let [state, drawn, runs] = [0, 0, 0];
    const throttle = new Throttle(() => ((drawn = state), runs++), 200);
    const change = () => (state++, throttle.request());
    change();
    assert.deepEqual([drawn, runs], [1, 1]);
    for (let n = 0; n < 1000; n++) {
      change();
      mock.timers.tick(1);
    }
    assert.deepEqual([runs, drawn], [6, 1001]);
    mock.timers.tick(1000);
    assert.deepEqual([drawn, runs], [1001, 6]);
  });

  it("end when it is disposed", () => {
    let runs = 0;
    const throttle = new Throttle(() => runs++, 200);
    throttle.request();
    throttle.request();
    throttle.dispose();
    mock.timers.tick(1000);
    assert.equal(runs, 1);
  });
});
