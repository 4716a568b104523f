// Package export writes a session as a document: as Markdown for people, or as JSON with all that its history has. It reads the
// store only, a page at a time, so a long session takes no more memory than a short one.
package export

import (
	"context"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"lashd/engine/graph"
	"lashd/engine/param"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Exports is the API of exports. It has no state, and its methods are safe for concurrent use.
type Exports struct{ Store *persistence.Store }

// Sizes of an export.
const (
	chunk    = 1 << 20 // bytes of a part of the document
	nodePage = 200     // nodes that are rendered together
)

// A document consists of units: unit 0 is its head, and unit n has the nodes from generation n-1 on.
// Each unit is rendered from what is stored and never changes, so a part can end within it.
type position struct {
	leaf   persistence.Cursor // the end of the path when the export began
	unit   int64
	offset int64 // bytes of the unit that earlier parts have
}

// Export returns the next part of the document, and the cursor for the part after it.
func (x *Exports) Export(ctx context.Context, p *protocol.SessionExportParams) (*protocol.SessionExportResult, error) {
	if formats := []protocol.ExportFormat{protocol.ExportMarkdown, protocol.ExportJSON}; p.Format != formats[0] && p.Format != formats[1] {
		return nil, param.NotOneOf("/format", formats)
	}
	row, err := x.Store.Session(ctx, p.SessionID)
	if err != nil {
		return nil, err
	}
	at, err := start(row, p.Cursor)
	if err != nil {
		return nil, err
	}
	result := &protocol.SessionExportResult{}
	for {
		text, next, err := x.unit(ctx, row, p, at)
		if err != nil {
			return nil, err
		}
		text = text[min(at.offset, int64(len(text))):]
		if room := chunk - len(result.Text); len(text) > room {
			n := cut(text, room)
			result.Text += text[:n]
			at.offset += int64(n)
			result.NextCursor = at.cursor(row.Key)
			return result, nil
		}
		result.Text += text
		if next == 0 {
			return result, nil
		}
		at.unit, at.offset = next, 0
	}
}

// cut returns the largest number of bytes up to n that ends with a whole character.
func cut(text string, n int) int {
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return n
}

// cursor returns the position as the cursor of the next part.
func (at position) cursor(session int64) string {
	return param.Cursor(param.ExportPages(session), at.leaf.Branch, at.leaf.Generation, at.unit, at.offset)
}

// start returns the position of a cursor; without one, the start of a document that ends at the
// present leaf.
func start(row persistence.Session, cursor string) (position, error) {
	c, err := param.ParseCursor(cursor, param.ExportPages(row.Key), 4)
	if err != nil {
		return position{}, err
	}
	if cursor == "" {
		return position{leaf: persistence.Cursor{Branch: row.Branch, Generation: row.Head.Generation}}, nil
	}
	return position{leaf: persistence.Cursor{Branch: c[0], Generation: c[1]}, unit: c[2], offset: c[3]}, nil
}

// unit renders one unit, and returns the number of the next one; 0: it is the last one.
func (x *Exports) unit(ctx context.Context, row persistence.Session, p *protocol.SessionExportParams, at position) (text string, next int64, err error) {
	empty := row.Head.Leaf == ""
	if at.unit == 0 {
		head, err := head(row, p.Format)
		if empty || err != nil {
			return head + tail(p.Format), 0, err
		}
		return head, 1, nil
	}
	from := at.unit - 1
	nodes, before, err := x.nodes(ctx, at.leaf, from)
	if err != nil {
		return "", 0, err
	}
	if len(nodes) == 0 {
		return tail(p.Format), 0, nil
	}
	if last := nodes[len(nodes)-1].Generation; last < at.leaf.Generation {
		next = last + 2
	}
	if p.Format == protocol.ExportMarkdown {
		return Markdown(graph.Items(nodes), Options{Reasoning: p.Reasoning, After: before.TurnID}), next, nil
	}
	text, err = lines(nodes, from > 0)
	if next == 0 {
		text += tail(p.Format)
	}
	return text, next, err
}

// nodes reads a page of nodes, and the node before them. It has more nodes rather than end between a
// call and its result.
func (x *Exports) nodes(ctx context.Context, leaf persistence.Cursor, from int64) (nodes []protocol.Node, before protocol.Node, err error) {
	if from > leaf.Generation {
		return nil, before, nil
	}
	if from > 0 {
		one, err := x.Store.Forward(ctx, leaf, from-1, 1)
		if err != nil || len(one) == 0 {
			return nil, before, err
		}
		before = one[0]
	}
	nodes, err = x.Store.Forward(ctx, leaf, from, nodePage)
	for err == nil && len(nodes) > 0 && nodes[len(nodes)-1].Generation < leaf.Generation {
		var more []protocol.Node
		more, err = x.Store.Forward(ctx, leaf, nodes[len(nodes)-1].Generation+1, 1)
		if err != nil || len(more) == 0 || !continues(&more[0]) {
			break
		}
		nodes = append(nodes, more...)
	}
	parent := before.ID
	for i := range nodes {
		nodes[i].Parent, parent = parent, nodes[i].ID
	}
	return nodes, before, err
}

// continues reports whether a node has results of calls or code of the node before.
func continues(n *protocol.Node) bool {
	return graph.IsResults(n) || n.Message != nil && len(n.Message.Parts) > 0 && n.Message.Parts[0].Kind == protocol.PartOutput
}

// head returns the text before the nodes.
func head(row persistence.Session, format protocol.ExportFormat) (string, error) {
	if format == protocol.ExportMarkdown {
		return Title(row.Session), nil
	}
	session, err := json.Marshal(row.Session)
	return fmt.Sprintf("{\"format\":%q,\"version\":%d,\"session\":%s,\"nodes\":[\n", protocol.DocumentFormat, protocol.DocumentVersion, session), err
}

// tail returns the text after the nodes.
func tail(format protocol.ExportFormat) string {
	if format == protocol.ExportMarkdown {
		return ""
	}
	return "\n]}\n"
}

// lines returns nodes as elements of a JSON array, one a line. more: others precede them.
func lines(nodes []protocol.Node, more bool) (string, error) {
	var all []byte
	for _, n := range nodes {
		line, err := json.Marshal(n)
		if err != nil {
			return "", fmt.Errorf("encode node %s: %w", n.ID, err)
		}
		if more {
			all = append(all, ",\n"...)
		}
		all, more = append(all, line...), true
	}
	return string(all), nil
}
