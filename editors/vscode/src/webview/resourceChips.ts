import type { FromWebview } from "../chat/messages";
import { mayMention, type Mention } from "../model/resourceMentions";
import { h, iconButton } from "./dom";
import { icon } from "./icons";

/** ResourceChips shows the resources of MCP servers that a draft mentions. The text alone says which ones those are; the extension knows which exist. */
export class ResourceChips {
  private asked = "";
  private mentioned: Mention[] = [];

  /** remove removes a word from the text. */
  constructor(private readonly post: (message: FromWebview) => void, private readonly remove: (word: string) => void) {}

  /** update asks about words that can name resources, if they are others than before. */
  update(text: string): void {
    const words = mayMention(text).join(" ");
    if (words !== this.asked) {
      this.asked = words;
      this.mentioned = this.mentioned.filter(({ word }) => words.includes(word));
      if (words !== "") {
        this.post({ type: "resources", text: words });
      }
    }
  }

  /** show receives the resources that the text mentions. */
  show(mentioned: Mention[]): void {
    this.mentioned = mentioned.filter(({ word }) => this.asked.includes(word));
  }

  get list(): Mention[] {
    return this.mentioned;
  }

  /** chips returns an element for each resource, with a button that removes it from the text. */
  chips(): HTMLElement[] {
    return this.mentioned.map(({ server, uri, word }) =>
      h("span", { class: "chip", title: `The model gets this resource of the MCP server ${server}` }, icon("mcp"), ` ${server}: ${uri}`, iconButton("close", `Remove ${word}`, () => this.remove(word))));
  }
}
