import type { FromWebview } from "../chat/messages";
import { sizeText, pdf } from "../model/files";
import type { Attachment, Digest } from "../protocol";
import { h } from "./dom";

/** Pictures shows the attachments of a conversation. It asks the extension for the contents of an image when it is first shown. */
export class Pictures {
  private readonly urls = new Map<Digest, string>(); // data URLs of images; empty: requested

  constructor(private readonly post: (message: FromWebview) => void) {}

  /** of returns the element of an attachment: a picture, or a chip with its name. */
  of({ name, type, data, digest, url }: Attachment): HTMLElement {
    const label = name ?? (type === pdf ? "PDF document" : type);
    if (!type.startsWith("image/") || url !== undefined) {
      return h("span", { class: "chip" }, label, data === undefined ? undefined : h("small", {}, sizeText((data.length * 3) / 4)));
    }
    const picture = h("img", { class: "picture", title: label });
    picture.alt = name ?? "Image";
    const known = data === undefined ? this.urlOf(digest ?? "", type) : `data:${type};base64,${data}`;
    picture.dataset.digest = digest ?? "";
    if (known !== "") {
      picture.src = known;
    }
    return picture;
  }

  /** small returns the element of an attachment of a message. A picture is small until it is clicked. */
  small(attachment: Attachment): HTMLElement {
    const shown = this.of(attachment);
    if (!shown.classList.contains("picture")) {
      return shown;
    }
    const toggle = h("button", { class: "thumbnail", title: attachment.name ?? "Image" }, shown);
    toggle.type = "button";
    const enlarge = (large: boolean) => (toggle.classList.toggle("large", large), toggle.setAttribute("aria-expanded", String(large)));
    toggle.addEventListener("click", () => enlarge(!toggle.classList.contains("large")));
    enlarge(false);
    return toggle;
  }

  /** arrived shows an image that the extension sent. */
  arrived(digest: Digest, url: string): void {
    this.urls.set(digest, url);
    document.querySelectorAll<HTMLImageElement>(`img[data-digest="${CSS.escape(digest)}"]`).forEach((picture) => (picture.src = url));
  }

  private urlOf(digest: Digest, mediaType: string): string {
    const known = this.urls.get(digest);
    if (known === undefined) {
      this.urls.set(digest, "");
      this.post({ type: "picture", digest, mediaType });
    }
    return known ?? "";
  }
}
