// Package mcpinput reads what people write for MCP servers: mentions of resources, such as @docs:doc://guide, and arguments of prompts. The daemon
// and its clients share it. docs/mcp.md has the same rules for other clients, and testdata/mentions.json has examples of them.
package mcpinput

import (
	"slices"
	"strings"

	"lashd/rpc/protocol"
)

// MostMentions is the maximum number of resources of one input.
const MostMentions = 16

const (
	opening = " \t\r\n([{<,;:'\"`" // a mention begins after one of these, or at the beginning of the text
	closing = ".,;:!?)]}>'`"       // these can follow a mention without a space
)

// Mentions reports whether a text may mention a resource, so that the resources of the session's servers are needed.
func Mentions(text string) bool {
	return len(candidates(text)) > 0
}

// Resources returns the resources that a text mentions, each once and at most MostMentions, in the order of the text. Those that no server has
// are not among them. If a server did not list its resources, each mention of it counts.
func Resources(text string, known *protocol.MCPResourcesResult) []protocol.ResourceMention {
	all := []protocol.ResourceMention{}
	for _, c := range candidates(text) {
		if m, ok := c.in(known); ok && len(all) < MostMentions && !slices.Contains(all, m) {
			all = append(all, m)
		}
	}
	return all
}

// Known reports whether all mentions of a text are resources in a list.
func Known(text string, known *protocol.MCPResourcesResult) bool {
	return !slices.ContainsFunc(candidates(text), func(c candidate) bool { _, ok := c.in(known); return !ok })
}

// Written returns how people write a resource: @server:uri, with quotes around a uri with spaces.
func Written(m protocol.ResourceMention) string {
	if strings.ContainsAny(m.URI, " \t") {
		return `@"` + m.Server + ":" + m.URI + `"`
	}
	return "@" + m.Server + ":" + m.URI
}

// candidate is a part of a text that may be a mention.
type candidate struct {
	protocol.ResourceMention
	quoted bool
}

// candidates returns the parts of a text that may be mentions.
func candidates(text string) (all []candidate) {
	for at := 0; at < len(text); at++ {
		if text[at] != '@' || at > 0 && !strings.ContainsRune(opening, rune(text[at-1])) {
			continue
		}
		word, quoted := wordAfter(text[at+1:])
		server, uri, _ := strings.Cut(word, ":")
		if isName(server) && uri != "" {
			all = append(all, candidate{protocol.ResourceMention{Server: server, URI: uri}, quoted})
			at += len(word)
		}
	}
	return all
}

// wordAfter returns the word at the beginning of a text: in quotes on one line, or else up to white space or a quote.
func wordAfter(text string) (word string, quoted bool) {
	if rest, ok := strings.CutPrefix(text, `"`); ok {
		word, _, closed := strings.Cut(rest, `"`)
		if closed && !strings.ContainsAny(word, "\r\n") {
			return word, true
		}
		return "", false
	}
	if end := strings.IndexAny(text, " \t\r\n\""); end >= 0 {
		text = text[:end]
	}
	return text, false
}

// isName reports whether a text can be the name of a server.
func isName(text string) bool {
	return text != "" && strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == ""
}

// in returns the resource that a candidate mentions. Punctuation at its end belongs to it only in quotes, or if a server lists it.
func (c candidate) in(known *protocol.MCPResourcesResult) (protocol.ResourceMention, bool) {
	m := c.ResourceMention
	for !lists(known.Data, m) {
		last := len(m.URI) - 1
		if c.quoted || last < 1 || strings.IndexByte(closing, m.URI[last]) < 0 {
			return m, mayHave(known, m)
		}
		m.URI = m.URI[:last]
	}
	return m, true
}

// lists reports whether a list has a resource.
func lists(list []protocol.ResourceInfo, m protocol.ResourceMention) bool {
	return slices.ContainsFunc(list, func(r protocol.ResourceInfo) bool { return !r.Template && r.Server == m.Server && r.URI == m.URI })
}

// mayHave reports whether a server has a template for a resource, or did not list what it has.
func mayHave(known *protocol.MCPResourcesResult, m protocol.ResourceMention) bool {
	return slices.ContainsFunc(known.Failed, func(f protocol.ServerFailure) bool { return f.Server == m.Server }) ||
		slices.ContainsFunc(known.Data, func(r protocol.ResourceInfo) bool {
			return r.Template && r.Server == m.Server && matches(r.URI, m.URI)
		})
}
