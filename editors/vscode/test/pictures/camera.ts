import { statSync } from "node:fs";
import { join, resolve } from "node:path";
import { chooseTheme } from "../ui/themes";
import type { Workbench } from "../ui/workbench";

export const images = resolve("../../docs/images");

/** plain are settings that leave out what VS Code adds to its editors. */
export const plain = { "editor.minimap.enabled": false, "breadcrumbs.enabled": false };

const themes = { dark: "Dark Modern", light: "Light Modern" } as const;

/** The largest picture, in bytes. */
const maxBytes = 150_000;

/** Camera makes the pictures of the documentation from a workbench with the dark theme. */
export class Camera {
  constructor(private readonly code: Workbench) {}

  /** dark chooses the theme of most pictures. */
  dark(): Promise<void> {
    return chooseTheme(this.code, themes.dark);
  }

  /** picture stores what the window shows. */
  async picture(name: string): Promise<void> {
    const { page } = this.code;
    await page.mouse.move(700, 780); // away from everything with a tooltip
    await page.locator(".part.statusbar").evaluate((bar) => bar.blur()); // VS Code draws a frame around what has the focus
    await this.settled();
    const path = join(images, `vscode-${name}.png`);
    await page.screenshot({ path, animations: "disabled" });
    if (statSync(path).size > maxBytes) {
      throw new Error(`${path} is too large`);
    }
  }

  /** both stores a picture in the dark and one in the light theme. The window must show the same after the theme has changed. */
  async both(dark: string, light: string): Promise<void> {
    await this.picture(dark);
    await chooseTheme(this.code, themes.light);
    await this.picture(light);
    await this.dark();
  }

  /** settled waits until two screenshots in a row are equal, apart from the time that is left for an answer. */
  private async settled() {
    const { page, chat } = this.code;
    for (let before = "", now = "-"; before !== now; ) {
      before = now;
      await page.waitForTimeout(400);
      now = (await page.screenshot({ animations: "disabled", mask: [chat.locator(".left")] })).toString("base64");
    }
  }
}
