import type { FromWebview } from "../chat/messages";
import { driverText } from "../model/drivers";
import { effortText } from "../model/models";
import { modeOf, sandboxOf, sandboxText } from "../model/modes";
import type { Config } from "../protocol";
import { h, menuButton, type MenuButton } from "./dom";

/** SettingButtons are the settings of a session below the input. Each opens the menu that changes it. */
export class SettingButtons {
  readonly element: HTMLElement;
  private readonly model: MenuButton;
  private readonly effort: MenuButton;
  private readonly mode: MenuButton;
  private readonly sandbox: MenuButton;
  private readonly driver = h("span", { class: "driver", title: "The way in which the session works with its model. A session keeps it." });

  /** meter is shown after the settings. */
  constructor(post: (message: FromWebview) => void, meter: HTMLElement) {
    this.model = menuButton("hubot", "Model", () => post({ type: "run", command: "chooseModel" }), "Choose the model from the next turn on.");
    this.effort = menuButton("dashboard", "Effort", () => post({ type: "run", command: "chooseEffort" }), "Choose the reasoning effort from the next turn on.");
    this.mode = menuButton("shield", "Mode", () => post({ type: "run", command: "chooseMode" }), "Choose what lashd asks about from the next turn on.");
    this.sandbox = menuButton("lock", "Sandbox", () => post({ type: "run", command: "chooseSandbox" }), "Choose the sandbox of commands from the next turn on.");
    this.element = h("span", { class: "settings" }, this.model.element, this.effort.element, this.mode.element, this.sandbox.element, this.driver, meter);
  }

  /** show shows the model, its effort, the approval mode, the sandbox and a driver that is not the standard one. */
  show(config: Config): void {
    const effort = effortText(config.model);
    const mode = modeOf(config);
    const open = sandboxOf(config) === "fullAccess";
    this.effort.element.hidden = effort === "";
    this.driver.textContent = driverText(config);
    this.driver.hidden = this.driver.textContent === "";
    this.model.show(config.model.id);
    this.effort.show(effort, `Effort: ${effort}`);
    this.mode.show(mode.name, mode.name, mode.about(sandboxOf(config)));
    this.sandbox.show(sandboxText(config));
    this.sandbox.draw(open ? "unlock" : "lock", open);
  }
}
