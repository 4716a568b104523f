package attachment

import (
	"context"
	"slices"
	"strconv"

	"lashd/persistence"
	"lashd/rpc/protocol"
)

// New holds what a request for a new session adds to it, with checked attachments. The commit that creates the session stores the
// blobs.
type New struct {
	Nodes []protocol.NodeBody
	First []protocol.InputPart
	Blobs []persistence.Blob
}

// New checks the attachments of the first nodes and of the first input of a session that does not exist yet. A digest may name contents of
// one of the sessions in from: the one whose history it shares, its parent, and the one that asks. Such contents become contents of the
// new session too. Empty ids are left out. If u is lenient, the nodes may be the history of another model.
func (p Policy) New(ctx context.Context, params *protocol.SessionNewParams, u Use, from []protocol.SessionID) (n New, err error) {
	u.Sessions, u.Pointer = []int64{0}, "/firstTurnInput"
	for _, id := range from {
		if id == "" {
			continue
		}
		row, err := p.Store.Session(ctx, id)
		if err != nil {
			return n, err
		}
		u.Sessions = append(u.Sessions, row.Key)
	}
	in, err := p.input(ctx, u, params.FirstTurnInput)
	if err != nil {
		return n, err
	}
	n.First = in.Parts
	if u.Lenient {
		u.Model = nil
	}
	n.Nodes, n.Blobs, err = p.nodes(ctx, u, params.Nodes)
	n.Blobs = append(n.Blobs, in.Blobs...)
	return n, err
}

// Append returns a request with checked attachments, and the blobs that the commit of its nodes must store. The model of the session
// must take the attachments.
func (p Policy) Append(ctx context.Context, params *protocol.GraphAppendParams) (*protocol.GraphAppendParams, []persistence.Blob, error) {
	if !slices.ContainsFunc(params.Nodes, func(n protocol.NodeBody) bool { return n.Message != nil && hasFiles(n.Message) }) {
		return params, nil, nil
	}
	u, err := p.use(ctx, params.SessionID)
	if err != nil {
		return nil, nil, err
	}
	checked := *params
	var blobs []persistence.Blob
	checked.Nodes, blobs, err = p.nodes(ctx, u, params.Nodes)
	return &checked, blobs, err
}

// nodes returns copies of nodes with checked attachments, and the blobs of these. The nodes have passed param.CheckAppend. Errors
// point below /nodes.
func (p Policy) nodes(ctx context.Context, u Use, nodes []protocol.NodeBody) ([]protocol.NodeBody, []persistence.Blob, error) {
	c := check{Policy: p, Use: u, root: "/nodes"}
	nodes = slices.Clone(nodes)
	for i := range nodes {
		if nodes[i].Message == nil {
			continue
		}
		m, err := c.message(ctx, "/nodes/"+strconv.Itoa(i)+"/message", nodes[i].Message)
		if err != nil {
			return nil, nil, err
		}
		nodes[i].Message = m
	}
	blobs, err := c.store()
	return nodes, blobs, err
}

// Imported returns a message of an imported history with checked attachments, and their blobs. A digest must name contents of one of the
// sessions. Any model may have taken the attachments. Errors point below pointer.
func (p Policy) Imported(ctx context.Context, pointer string, m *protocol.Message, sessions []int64) (*protocol.Message, []persistence.Blob, error) {
	c := check{Policy: p, Use: Use{Sessions: sessions}, root: pointer}
	m, err := c.message(ctx, pointer, m)
	if err != nil {
		return nil, nil, err
	}
	blobs, err := c.store()
	return m, blobs, err
}

// Sent holds the messages of a single model call with checked attachments. Contents reads those that the session stores.
type Sent struct {
	Messages []*protocol.Message
	Contents func(protocol.Digest) ([]byte, error)
}

// Messages checks the attachments of a single model call, which stores nothing. The model must take the attachments, and a digest must
// name contents of the session, if the call has one. The messages have passed param.CheckMessage. Errors point below /messages.
func (p Policy) Messages(ctx context.Context, params *protocol.CompletionParams, model *protocol.ModelSpec) (sent Sent, err error) {
	key := int64(0)
	if params.SessionID != "" {
		row, err := p.Store.Session(ctx, params.SessionID)
		if err != nil {
			return sent, err
		}
		key = row.Key
	}
	c := check{Policy: p, Use: Use{Model: model, Sessions: []int64{key}, Send: true}, root: "/messages"}
	for i, m := range params.Conversation() {
		m, err := c.message(ctx, "/messages/"+strconv.Itoa(i), m)
		if err != nil {
			return sent, err
		}
		sent.Messages = append(sent.Messages, m)
	}
	sent.Contents = Reader(ctx, p.Store, key)
	return sent, nil
}
