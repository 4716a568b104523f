import { messageOf, type Daemon } from "../daemon/daemon";
import type { Log } from "../daemon/link";
import { mayMention, mentionsIn, type Mention } from "../model/resourceMentions";
import { resourceSuggestions, templateValuesAt, valueSuggestions, type TemplateValue } from "../model/resources";
import type { MCPResourcesResult, SessionID } from "../protocol";
import type { Suggestion } from "./messages";

/** How long a list of resources is used. The servers are not asked again for each letter after @. */
const keptMs = 10_000;

/** Resources knows the resources of the MCP servers of a session. */
export class Resources {
  private askedAt = 0;
  private list?: Promise<MCPResourcesResult>;

  constructor(private readonly daemon: Daemon, private readonly sessionId: SessionID, private readonly log: Log) {}

  /** suggestions returns what a word after @ can stand for: resources, templates, and values for the variable of a template. Errors are logged. */
  async suggestions(word: string): Promise<Suggestion[]> {
    try {
      const { data } = await this.listed();
      const values = await Promise.all(templateValuesAt(word, data).map((asked) => this.values(asked)));
      return [...values.flat(), ...resourceSuggestions(word, data)];
    } catch (error) {
      this.log.warn(`resources of MCP servers: ${messageOf(error)}`);
      return [];
    }
  }

  /** mentioned returns the resources that a text mentions. */
  async mentioned(text: string): Promise<Mention[]> {
    return mayMention(text).length === 0 ? [] : mentionsIn(text, await this.listed());
  }

  private async values(asked: TemplateValue): Promise<Suggestion[]> {
    const { server, template, variable: { name, value, others } } = asked;
    const { values } = await this.daemon.call("mcp/complete", { sessionId: this.sessionId, server, template, argument: name, value, arguments: others });
    return valueSuggestions(asked, values);
  }

  private listed(): Promise<MCPResourcesResult> {
    if (!this.list || Date.now() - this.askedAt > keptMs) {
      this.askedAt = Date.now();
      this.list = this.ask();
    }
    return this.list;
  }

  private async ask(): Promise<MCPResourcesResult> {
    try {
      const known = await this.daemon.call("mcp/resources", { sessionId: this.sessionId });
      known.failed.forEach(({ server, reason }) => this.log.warn(`resources of ${server}: ${reason}`));
      return known;
    } catch (error) {
      this.list = undefined; // ask again
      throw error;
    }
  }
}
