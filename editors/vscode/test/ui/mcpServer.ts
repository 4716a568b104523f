import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** McpServer is an MCP server on this machine with one tool. It requires a login, and is the authorization server for it as well. */
export class McpServer {
  /** requests with a token of a login */
  authorized = 0;
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
    if (request.headers.authorization !== "Bearer token-of-mcp") {
      return response.writeHead(401, { "www-authenticate": `Bearer resource_metadata="${this.origin}/.well-known/oauth-protected-resource"` }).end();
    }
    this.authorized++;
    return this.speak(request, body, response, json);
  }

  private speak(request: IncomingMessage, body: string, response: ServerResponse, json: (value: object) => unknown) {
    const { id, method, params } = (request.method === "POST" ? JSON.parse(body) : {}) as { id?: number; method?: string; params?: { protocolVersion: string } };
    if (id === undefined) {
      return response.writeHead(request.method === "POST" ? 202 : 405).end();
    }
    const results: Record<string, object> = {
      initialize: { protocolVersion: params?.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "docs-server", version: "1" } },
      "tools/list": { tools: [{ name: "look", description: "Looks.", inputSchema: { type: "object" } }] },
    };
    return json({ jsonrpc: "2.0", id, result: results[method ?? ""] ?? {} });
  }
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const part of request) {
    text += String(part);
  }
  return text;
}
