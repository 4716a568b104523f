import type { FrameLocator, Page } from "playwright-core";
import { until } from "./browser";

/** chatIn returns the page of the chat that is in a part of the window, such as "auxiliarybar". The element of a webview is not in that of its part. */
export async function chatIn(page: Page, part: string): Promise<FrameLocator> {
  const pages = page.locator("iframe.webview.ready:visible");
  const around = page.locator(`.part.${part}`);
  let found = -1;
  await until(async () => {
    const [whole, ...all] = await Promise.all([around, ...(await pages.all())].map((one) => one.boundingBox()));
    found = all.findIndex((box) => box && whole && box.x >= whole.x && box.x + box.width <= whole.x + whole.width + 1);
    return found >= 0;
  });
  return pages.nth(found).contentFrame().frameLocator("iframe#active-frame");
}
