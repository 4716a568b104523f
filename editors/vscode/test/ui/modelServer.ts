import { readdirSync, readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";

/** deviceCode is what a ModelServer asks a person to enter. */
export const deviceCode = "WXYZ-6789";

/**
 * ModelServer is a server of Chat Completions on this machine that accepts one API key. It is also an authorization server for ChatGPT, in which
 * each person has entered the device code.
 */
export class ModelServer {
  /** keys of requests that get no answer */
  silentFor = "";
  /** requests that a client has given up */
  abandoned = 0;
  /** processes that had the key in their arguments or environment during a request */
  readonly leaks: string[] = [];
  private readonly server: Server;

  /** With models, the server lists them, and only for the key. */
  constructor(private readonly key: string, private readonly models?: string[]) {
    this.server = createServer((request, response) => this.answer(request, response));
  }

  /** start listens, and returns the base URL. */
  start(): Promise<string> {
    return new Promise((resolve) => this.server.listen(0, "127.0.0.1", () => resolve(`http://127.0.0.1:${(this.server.address() as AddressInfo).port}/v1`)));
  }

  close(): void {
    this.server.closeAllConnections();
    this.server.close();
  }

  private answer(request: IncomingMessage, response: ServerResponse) {
    request.resume();
    const known = request.headers.authorization === `Bearer ${this.key}`;
    if (request.url === "/v1/models" && (known || !this.models)) {
      response.end(JSON.stringify({ data: (this.models ?? ["local-model"]).map((id) => ({ id })) }));
      return;
    }
    const tokens = { access_token: "token-of-a-login", refresh_token: "renews-a-login", token_type: "Bearer", expires_in: 3600 };
    const grants: Record<string, object> = {
      "/oauth/token": tokens,
      "/api/accounts/deviceauth/usercode": { device_auth_id: "device", user_code: deviceCode, interval: "0" },
      "/api/accounts/deviceauth/token": { authorization_code: "code", code_verifier: "verifier" },
    };
    const granted = grants[request.url ?? ""];
    if (granted) {
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(granted));
      return;
    }
    if (this.silentFor !== "" && request.headers.authorization === `Bearer ${this.silentFor}`) {
      response.on("close", () => this.abandoned++);
      return;
    }
    if (!known) {
      response.writeHead(401, { "content-type": "application/json" }).end(JSON.stringify({ error: { message: "this key is not valid", code: "invalid_api_key" } }));
      return;
    }
    this.leaks.push(...processesWith(this.key));
    response.writeHead(200, { "content-type": "text/event-stream" });
    const chunk = (delta: object, more: object = {}) => response.write(`data: ${JSON.stringify({ id: "c1", choices: [{ index: 0, delta, ...more }] })}\n\n`);
    chunk({ role: "assistant", content: "With a key of your own." });
    chunk({}, { finish_reason: "stop" });
    response.end("data: [DONE]\n\n");
  }
}

/** processesWith returns the processes whose arguments or environment contain a text, as far as /proc shows them. */
function processesWith(text: string): string[] {
  const found: string[] = [];
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    for (const file of ["cmdline", "environ"]) {
      try {
        if (readFileSync(`/proc/${pid}/${file}`, "utf8").includes(text)) {
          found.push(`${pid} ${file}`);
        }
      } catch {
        // the process has ended, or belongs to another user
      }
    }
  }
  return found;
}

/** filesWith returns the files below a directory that contain a text. */
export function filesWith(dir: string, text: string): string[] {
  return readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((file) => readFileSync(file, "latin1").includes(text));
}

/** firstRun returns a config.toml without models, in which Anthropic and Ollama are at an address and other local servers do not run. */
export function firstRun(base: string): string {
  const local = ["llamacpp", "lmstudio", "vllm"].map((name) => `[providers.${name}]\nbase_url = "http://127.0.0.1:1/v1"\n`).join("");
  return `trace = true\n${local}[providers.ollama]\nbase_url = "${base}"\n[providers.anthropic]\napi = "chat"\nbase_url = "${base}"\n[providers.chatgpt]\nlogin = "${new URL(base).origin}"\n`;
}
