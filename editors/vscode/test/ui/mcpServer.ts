import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

const values: Record<string, string[]> = { file: ["src/one.txt", "src/two.txt"], focus: ["names", "error handling"], title: ["emma", "persuasion"] };

/** McpServer is an MCP server on this machine with a tool, resources and a prompt. If it requires a login, it is the authorization server for it as well. */
export class McpServer {
  /** requests with a token of a login */
  authorized = 0;
  /** times that a client has connected */
  begun = 0;
  /** visits of the page that its tool requires */
  visits = 0;

  constructor(private readonly login = true) {}

  private readonly server: Server = createServer((request, response) => void this.answer(request, response));

  /** start listens, and returns the URL of the MCP server. */
  start(): Promise<string> {
    return new Promise((resolve) => this.server.listen(0, "127.0.0.1", () => resolve(`${this.origin}/mcp`)));
  }

  close(): void {
    this.server.closeAllConnections();
    this.server.close();
  }

  private get origin(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  private async answer(request: IncomingMessage, response: ServerResponse) {
    const url = new URL(request.url ?? "/", this.origin);
    const json = (value: object, status = 200) => response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
    const body = await textOf(request);
    if (url.pathname.startsWith("/.well-known/oauth-protected-resource")) {
      return json({ resource: `${this.origin}/mcp`, authorization_servers: [this.origin] });
    }
    if (url.pathname === "/.well-known/oauth-authorization-server") {
      return json({
        issuer: this.origin, authorization_endpoint: `${this.origin}/authorize`, token_endpoint: `${this.origin}/token`, registration_endpoint: `${this.origin}/register`,
        response_types_supported: ["code"], grant_types_supported: ["authorization_code", "refresh_token"], code_challenge_methods_supported: ["S256"], token_endpoint_auth_methods_supported: ["none"],
      });
    }
    if (url.pathname === "/register") {
      return json({ ...(JSON.parse(body) as object), client_id: "lashd-test" }, 201);
    }
    if (url.pathname === "/authorize") {
      const back = new URL(url.searchParams.get("redirect_uri") ?? "");
      back.searchParams.set("code", "a-code");
      back.searchParams.set("state", url.searchParams.get("state") ?? "");
      return response.writeHead(302, { location: back.href }).end();
    }
    if (url.pathname === "/token") {
      return json({ access_token: "token-of-mcp", refresh_token: "refresh-of-mcp", token_type: "Bearer", expires_in: 3600 });
    }
    if (url.pathname === "/bill") {
      this.visits++;
      return response.writeHead(200, { "content-type": "text/html" }).end("<title>The bill</title>");
    }
    if (this.login && request.headers.authorization !== "Bearer token-of-mcp") {
      return response.writeHead(401, { "www-authenticate": `Bearer resource_metadata="${this.origin}/.well-known/oauth-protected-resource"` }).end();
    }
    this.authorized++;
    return this.speak(request, body, response, json);
  }

  private speak(request: IncomingMessage, body: string, response: ServerResponse, json: (value: object) => unknown) {
    const { id, method, params } = (request.method === "POST" ? JSON.parse(body) : {}) as { id?: number; method?: string; params?: Params };
    if (id === undefined) {
      return response.writeHead(request.method === "POST" ? 202 : 405).end();
    }
    if (method === "tools/call") {
      const elicitations = [{ mode: "url", elicitationId: "bill", url: `${this.origin}/bill?id=7`, message: "Pay the bill." }];
      return json({ jsonrpc: "2.0", id, error: { code: -32042, message: "a page is required", data: { elicitations } } });
    }
    this.begun += Number(method === "initialize");
    const { name = "", value = "" } = params?.argument ?? {};
    const results: Record<string, object> = {
      initialize: { protocolVersion: params?.protocolVersion, capabilities: { tools: {}, resources: {}, prompts: {}, completions: {} }, serverInfo: { name: "docs-server", version: "1" } },
      "tools/list": { tools: [{ name: "look", title: "Look it up", description: "Looks.", inputSchema: { type: "object" } }] },
      "resources/list": { resources: [{ uri: "doc://guide", name: "guide", title: "The guide", description: "How the project is built" }, { uri: "doc://changes", name: "changes", title: "Changes" }] },
      "resources/templates/list": { resourceTemplates: [{ uriTemplate: "doc://books/{title}", name: "book", title: "A book" }] },
      "resources/read": { contents: [{ uri: params?.uri, mimeType: "text/plain", text: `contents of ${params?.uri}` }] },
      "prompts/list": { prompts: [{ name: "review", description: "Review a file", arguments: [{ name: "file", required: true }, { name: "focus", description: "what to look at" }] }] },
      "prompts/get": { messages: [{ role: "user", content: { type: "text", text: `Review ${JSON.stringify(params?.arguments)}` } }] },
      "completion/complete": { completion: { values: (values[name] ?? []).filter((one) => one.startsWith(value)) } },
    };
    return json({ jsonrpc: "2.0", id, result: results[method ?? ""] ?? {} });
  }
}

interface Params {
  protocolVersion?: string;
  uri?: string;
  arguments?: object;
  argument?: { name: string; value: string };
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const part of request) {
    text += String(part);
  }
  return text;
}
