package search

import (
	"context"
	"crypto/sha256"
	"strings"

	"lashd/engine/param"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Limits of a page of inputs.
const (
	maxInputs  = 5000    // inputs of the directory that are considered
	inputRead  = 256     // inputs of one read; a longer one would keep the log from being folded
	inputBytes = 1 << 20 // text of a page; the first input of a page may be larger
)

// Inputs lists the texts that people sent to the sessions of a directory, newest first. A text that
// was sent several times is listed once, at its newest place. To know which those are, each page
// reads the inputs of the pages before it again.
func (s *Searches) Inputs(ctx context.Context, p *protocol.SessionInputsParams) (*protocol.SessionInputsResult, error) {
	at, err := param.ParseCursor(p.Cursor, param.InputPages, 1)
	if err != nil {
		return nil, err
	}
	limit, err := param.PageSize(p.Limit, 100, 500)
	if err != nil {
		return nil, err
	}
	page := &inputPage{limit: limit, before: at[0], seen: map[[sha256.Size]byte]bool{}, data: []protocol.SentInput{}}
	row := int64(0)
	for read := 0; read < maxInputs && !page.full; read += inputRead {
		inputs, err := s.store.Search.Inputs(ctx, param.Where(p.Cwd), row, inputRead)
		if err != nil {
			return nil, err
		}
		page.add(inputs)
		if len(inputs) < inputRead {
			break
		}
		row = inputs[len(inputs)-1].Row
	}
	result := &protocol.SessionInputsResult{Data: page.data}
	if page.full {
		result.NextCursor = param.Cursor(param.InputPages, page.last)
	}
	return result, nil
}

// inputPage collects a page of distinct texts from inputs that arrive newest first.
type inputPage struct {
	limit  int
	before int64                      // row of the last input of the page before; 0: this is the first page
	seen   map[[sha256.Size]byte]bool // digests of the texts so far, those of earlier pages included
	data   []protocol.SentInput
	size   int   // bytes of the texts in data
	last   int64 // row of the newest input that was added to data
	full   bool  // there is another text for the next page
}

// add adds inputs until the page is full.
func (g *inputPage) add(inputs []persistence.SentInput) {
	for _, in := range inputs {
		text, ok := sentByPerson(in)
		if !ok {
			continue
		}
		digest := sha256.Sum256([]byte(text))
		if g.seen[digest] {
			continue
		}
		g.seen[digest] = true
		if g.before != 0 && in.Row >= g.before {
			continue // on an earlier page
		}
		if len(g.data) == g.limit || len(g.data) > 0 && g.size+len(text) > inputBytes {
			g.full = true
			return
		}
		g.data = append(g.data, protocol.SentInput{Text: text, SessionID: in.Session, InputID: in.ID, TurnID: in.TurnID, AtMs: in.AtMs})
		g.size, g.last = g.size+len(text), in.Row
	}
}

// sentByPerson returns the text of an input without the space around it. ok is false for an input
// of a plugin, of another session or of a wake, and for one without text.
func sentByPerson(in persistence.SentInput) (text string, ok bool) {
	if in.Source != "" || in.Wake != nil || in.Ceiling != nil {
		return "", false
	}
	var parts []string
	for _, p := range in.Input {
		if p.Type == protocol.InputText {
			parts = append(parts, p.Text)
		}
	}
	text = strings.TrimSpace(strings.Join(parts, "\n"))
	return text, text != ""
}
