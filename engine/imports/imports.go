// Package imports creates sessions from documents that session/export wrote as JSON. An imported session has the history of the document
// and nothing else of it: settings, approvals, rules, plugin state and file points are those of a new session. Its tool calls are
// history and never run.
package imports

import (
	"cmp"
	"context"
	"sync"

	"lashd/engine/param"
	"lashd/engine/receipt"
	"lashd/engine/upload"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Sessions creates the session of an import. The engine implements it.
type Sessions interface {
	Import(context.Context, *protocol.SessionNewParams, *History, receipt.Request) (*protocol.SessionNewResult, error)
}

// Imports is the API of imports. Its methods are safe for concurrent use.
type Imports struct {
	store    *persistence.Store
	receipts *receipt.Flights
	sessions func() Sessions
	denyURLs bool
	uploads  upload.Uploads
	whole    sync.Mutex // held while a whole document is decoded and stored, which takes much memory
}

// New returns the API of imports into a store. sessions is called only to create a session. denyURLs refuses attachments by URL.
func New(store *persistence.Store, receipts *receipt.Flights, sessions func() Sessions, denyURLs bool) *Imports {
	return &Imports{
		store: store, receipts: receipts, sessions: sessions, denyURLs: denyURLs,
		uploads: upload.Uploads{What: "document", Limit: persistence.MaxTurnBytes, Many: 2},
	}
}

// History is the checked history of a document.
type History struct {
	Nodes []protocol.Node    // without ids; the turns are new ones
	Blobs []persistence.Blob // attachments and artifacts that the nodes refer to
	Turns int64
}

// AddTo adds the history to the commit that creates its session. Frames get the settings of that session. A history that begins with a
// frame replaces the first node of the commit.
func (h *History) AddTo(c *persistence.Commit) {
	c.Create.Imported = true
	c.Blobs = append(c.Blobs, h.Blobs...)
	if len(h.Nodes) > 0 && h.Nodes[0].FrameOpen != nil {
		c.Nodes = nil
	}
	for i, n := range h.Nodes {
		n.ID = protocol.DeriveNodeID(c.Session, cmp.Or(string(n.TurnID), "import"), i)
		if n.FrameOpen != nil {
			open := *n.FrameOpen
			open.Config = c.Create.Config
			n.FrameOpen = &open
		}
		c.Nodes = append(c.Nodes, n)
	}
}

// Import adds a part to an upload. The part with Done set completes it: Import then checks the document and creates the session in one
// commit. If that fails nothing was created, and the upload stays until it expires.
func (x *Imports) Import(ctx context.Context, p *protocol.SessionImportParams) (*protocol.SessionImportResult, error) {
	if err := check(p); err != nil {
		return nil, err
	}
	return receipt.Once(ctx, x.receipts, "session/import", p.Key(), p, func(rc receipt.Request) (*protocol.SessionImportResult, error) {
		text, err := x.uploads.Add(p.UploadID, p.Offset, []byte(p.Document))
		if err != nil {
			return nil, err
		}
		result := &protocol.SessionImportResult{Received: int64(len(text))}
		if !p.Done {
			return result, nil
		}
		return result, x.create(context.WithoutCancel(ctx), p, text, result, rc)
	})
}

// check validates the request without the document.
func check(p *protocol.SessionImportParams) error {
	switch {
	case p.UploadID == "":
		return param.Bad("/uploadId", "must not be empty")
	case p.Offset < 0:
		return param.Bad("/offset", "must not be negative")
	case len(p.Document) > param.MaxChunk:
		return param.Bad("/document", "has %d bytes, at most %d in a part", len(p.Document), param.MaxChunk)
	case p.Done && p.Cwd == "":
		return param.Bad("/cwd", "is required with the last part: the absolute path of a directory")
	case !p.Done && p.Cwd+p.Title+p.Model != "":
		return param.Bad("/done", "must be set with cwd, title or model")
	}
	if err := param.CheckName("/uploadId", p.UploadID); err != nil {
		return err
	}
	return param.CheckTitle(p.Title)
}

// create checks a whole document and creates its session. It fills in the result.
func (x *Imports) create(ctx context.Context, p *protocol.SessionImportParams, text []byte, result *protocol.SessionImportResult, rc receipt.Request) error {
	x.whole.Lock()
	defer x.whole.Unlock()
	doc, err := parse(text)
	if err != nil {
		return err
	}
	h, missing, err := x.files(ctx, doc)
	if err != nil {
		return err
	}
	result.Missing = missing
	rc.Answer = func(done any) any {
		result.Session = &done.(*protocol.SessionNewResult).Session
		return result
	}
	asked := &protocol.SessionNewParams{Cwd: p.Cwd, Title: doc.title(p.Title), Model: p.Model, Driver: doc.driver()}
	asked, err = param.ResolveNewSession("", asked)
	if err != nil {
		return err
	}
	done, err := x.sessions().Import(ctx, asked, h, rc)
	if err != nil {
		return err
	}
	result.Session = &done.Session
	x.uploads.Forget(p.UploadID)
	return nil
}
