package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"

	"lashd/engine"
	"lashd/engine/models"
	"lashd/engine/param"
	"lashd/engine/plugin"
	"lashd/engine/provider"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// looker is a model that calls the tool look in the first call of a turn and ends the turn in the next one. It keeps what it read.
type looker struct {
	mu    sync.Mutex
	seen  []protocol.Attachment      // of the newest result
	text  string                     // of the newest result
	files map[protocol.Digest]string // contents by digest
	last  []*protocol.Message        // of the newest call
}

func (l *looker) Stream(_ context.Context, req *provider.Request) iter.Seq2[provider.Chunk, error] {
	return func(yield func(provider.Chunk, error) bool) {
		if l.read(req) {
			yield(provider.Chunk{Text: "seen", Stop: protocol.StopEnd}, nil)
			return
		}
		call := &protocol.ToolCall{CallID: "c1", Name: "look", Args: json.RawMessage(`{}`)}
		if yield(provider.Chunk{Part: &protocol.Part{Kind: protocol.PartToolCall, Call: call}}, nil) {
			yield(provider.Chunk{Stop: protocol.StopToolUse}, nil)
		}
	}
}

// read keeps the result in the last message and reports whether there is one.
func (l *looker) read(req *provider.Request) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = req.Messages
	l.files = map[protocol.Digest]string{}
	found := false
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			if p.Result == nil {
				continue
			}
			l.seen, l.text = p.Result.Output.Attachments, p.Result.Output.Text
			for _, a := range p.Result.Output.Attachments {
				data, _ := req.Contents(a.Digest)
				l.files[a.Digest] = string(data)
			}
			found = m == req.Messages[len(req.Messages)-1]
		}
	}
	return found
}

// shows is a tool that returns attachments.
func shows(files ...protocol.Attachment) toolFunc {
	return toolFunc{name: "look", run: func(context.Context, tool.Invocation) (tool.Result, error) {
		out := protocol.Succeed("here")
		out.Attachments = files
		return tool.Result{Output: out}, nil
	}}
}

// bigPNG is an image that lashd stores by its digest.
var bigPNG = []byte(png + strings.Repeat("x", 5000))

func TestToolFiles(t *testing.T) {
	t.Run("runtime/S15 the model sees an image of a tool result, also in a later turn after a restart", func(t *testing.T) {
		model := &looker{}
		d := start(t, setup{model: model, tools: []tool.Provider{shows(protocol.Attachment{Name: "a", Type: "image/jpeg", Data: bigPNG})}})
		id := d.session(t)
		d.turn(t, id, "go")
		want := protocol.Attachment{Name: "a", Type: "image/png", Digest: protocol.DigestOf(bigPNG), Tokens: 85}
		check := func(when string) {
			t.Helper()
			if len(model.seen) != 1 || model.seen[0].Digest != want.Digest || model.seen[0].Type != want.Type || model.seen[0].Tokens != want.Tokens || len(model.seen[0].Data) > 0 {
				t.Errorf("%s the result has %+v, want %+v", when, model.seen, want)
			}
			if model.files[want.Digest] != string(bigPNG) || model.text != "here" {
				t.Errorf("%s the model read %d bytes and %q", when, len(model.files[want.Digest]), model.text)
			}
		}
		check("at once")
		model.seen, model.files = nil, nil
		d = d.restart(t, nil)
		d.turn(t, id, "again")
		check("after a restart")
	})
	t.Run("runtime/S15 attachments of a tool result that are not allowed are removed, and the text says why", func(t *testing.T) {
		model := &looker{}
		d := start(t, setup{model: model, config: func(c *engine.Config) { c.DenyURLs = true }, tools: []tool.Provider{shows(
			protocol.Attachment{Name: "prog", Type: "image/png", Data: []byte("\x7fELF\x00\xff")},
			protocol.Attachment{Name: "far", Type: "image/png", URL: "https://x.example/y.png"},
			protocol.Attachment{Name: "other", Type: "image/png", Digest: protocol.DigestOf(bigPNG)},
			protocol.Attachment{Name: "broken", Type: "image/png", Data: []byte(png[:8] + "rubbish that is no header")},
			protocol.Attachment{Name: "good", Type: "image/png", Data: []byte(png)},
		)}})
		stranger := d.session(t)
		d.artifact(t, stranger, bigPNG)
		d.turn(t, d.session(t), "go")
		if len(model.seen) != 1 || model.seen[0].Name != "good" {
			t.Errorf("the model got %+v", model.seen)
		}
		want := `here
[lashd removed the attachment "prog": it has contents that models cannot read; send a PNG, JPEG, GIF or WebP image, a PDF document, or UTF-8 text]
[lashd removed the attachment "far": this daemon does not allow attachments by URL (deny_attachment_urls in config.toml); send the contents instead]
[lashd removed the attachment "other": there is no artifact ` + string(protocol.DigestOf(bigPNG)) + `]
[lashd removed the attachment "broken": it is damaged: it begins like image/png but has no width and height; save the image again]`
		if model.text != want {
			t.Errorf("the text is\n%s\nwant\n%s", model.text, want)
		}
	})
	t.Run("runtime/S15 a thousand attachments of a result become twenty, with twenty notes", func(t *testing.T) {
		model := &looker{}
		all := slices.Repeat([]protocol.Attachment{{Name: "a", Type: "image/png", Data: []byte(png)}}, 1000)
		d := start(t, setup{model: model, tools: []tool.Provider{shows(all...)}})
		d.turn(t, d.session(t), "go")
		if n := strings.Count(model.text, "has more than 20 attachments"); len(model.seen) != 20 || n != 20 {
			t.Errorf("%d attachments and %d notes", len(model.seen), n)
		}
	})
	t.Run("runtime/S15 a hook after the call can remove an attachment, and cannot add a denied one", func(t *testing.T) {
		model := &looker{}
		var got []protocol.Attachment
		hook := hooked{"h", func(r *plugin.Registrar) {
			r.ToolResults().After(func(_ context.Context, c *plugin.ToolResultContext) ([]plugin.Directive, error) {
				got = c.Output.Attachments
				out := c.Output
				out.Attachments = []protocol.Attachment{c.Output.Attachments[1], {Name: "far", Type: "image/png", URL: "https://x.example/y.png"}}
				return []plugin.Directive{plugin.ShortCircuit(out)}, nil
			})
		}}
		d := start(t, setup{model: model, plugins: plugins(hook), config: func(c *engine.Config) { c.DenyURLs = true }, tools: []tool.Provider{shows(
			protocol.Attachment{Name: "secret", Type: "image/png", Data: bigPNG}, protocol.Attachment{Name: "kept", Type: "image/png", Data: []byte(png)},
		)}})
		d.turn(t, d.session(t), "go")
		if len(got) != 2 || got[0].Digest != protocol.DigestOf(bigPNG) || len(got[0].Data) > 0 {
			t.Errorf("the hook saw %+v", got)
		}
		if len(model.seen) != 1 || model.seen[0].Name != "kept" || !strings.Contains(model.text, `removed the attachment "far"`) {
			t.Errorf("the model got %+v with %q", model.seen, model.text)
		}
	})
	t.Run("runtime/S15 a message of a plugin has its attachments checked", func(t *testing.T) {
		model := &looker{}
		hook := hooked{"h", func(r *plugin.Registrar) {
			r.ToolResults().After(func(context.Context, *plugin.ToolResultContext) ([]plugin.Directive, error) {
				return []plugin.Directive{plugin.Enqueue(plugin.Message{Role: protocol.RoleUser, Parts: []protocol.Part{
					{Kind: protocol.PartAttachment, Attachment: &protocol.Attachment{Name: "far", Type: "image/png", URL: "https://x.example/y.png"}},
					{Kind: protocol.PartAttachment, Attachment: &protocol.Attachment{Name: "big", Type: "image/png", Data: bigPNG}},
				}})}, nil
			})
		}}
		d := start(t, setup{model: model, plugins: plugins(hook), config: func(c *engine.Config) { c.DenyURLs = true }, tools: []tool.Provider{shows()}})
		id := d.session(t)
		d.turn(t, id, "go")
		d.turn(t, id, "again")
		data, err := json.Marshal(model.last)
		if err != nil {
			t.Fatal(err)
		}
		if text := string(data); strings.Contains(text, "x.example") || !strings.Contains(text, `removed the attachment \"far\"`) || !strings.Contains(text, `"digest":"`+string(protocol.DigestOf(bigPNG))) {
			t.Errorf("the model got %s", data)
		}
	})
}

func TestClientToolFiles(t *testing.T) {
	const client = "cli_editor"
	model := &looker{}
	d := start(t, setup{model: model})
	id := d.session(t)
	defer d.Clients.Connected(client)()
	tools := []protocol.ClientTool{{ToolManifest: protocol.ToolManifest{Name: "look"}}}
	must[*protocol.SessionOverlayResult](t)(d.Sessions.SetOverlay(t.Context(), client, &protocol.SessionOverlayParams{SessionID: id, Tools: tools}))
	o := d.observe(t, id)
	turn := d.begin(t, id, "go").TurnID
	e := o.typed(protocol.EventToolRequested)
	respond := func(a protocol.Attachment) error {
		out := protocol.Succeed("here")
		out.Attachments = []protocol.Attachment{a}
		_, err := d.Tools.Respond(t.Context(), client, &protocol.ToolRespondParams{SessionID: id, CallID: e.ToolCall.CallID, Output: &out})
		return err
	}
	bad := new(*param.Error)
	if err := respond(protocol.Attachment{Type: "image/png", Data: []byte("hello")}); !errors.As(err, bad) || (*bad).Pointer != "/output/attachments/0" {
		t.Errorf("runtime/S15 a client's tool that returns text as an image is refused with %v", err)
	}
	if err := respond(protocol.Attachment{Type: "image/png", Data: bigPNG}); err != nil {
		t.Fatal(err)
	}
	d.wait(t, turn)
	if model.files[protocol.DigestOf(bigPNG)] != string(bigPNG) {
		t.Errorf("runtime/S15 the model got %+v of a client's tool", model.seen)
	}
}

// TestOneWayIn sends the same attachments through each method that adds any.
func TestOneWayIn(t *testing.T) {
	sees := protocol.ModelSpec{Provider: "p", ID: "sees", Inputs: []protocol.Modality{protocol.ModalityImage}}
	model := &reader{}
	queued := &protocol.Attachment{}
	d := start(t, setup{
		plugins: []plugin.Factory{operator(func(g plugin.OperationGroup) {
			g.Command(named("queue", ""), func(context.Context, *plugin.OperationCall) (*plugin.OperationResult, error) {
				return &plugin.OperationResult{Queue: []plugin.QueueTurn{{Input: attached(queued)}}}, nil
			})
		})},
		config: func(c *engine.Config) {
			c.Models, c.DenyURLs = models.Fixed{{Name: "sees", Spec: sees, Provider: model}}, true
		},
	})
	id, other := d.session(t), d.session(t)
	d.artifact(t, other, append([]byte(png), "of another session"...))
	message := func(a *protocol.Attachment) protocol.Message {
		return protocol.UserMessage(attached(a), nil)
	}
	nodes := func(a *protocol.Attachment) []protocol.NodeBody {
		m := message(a)
		return []protocol.NodeBody{{Message: &m}}
	}
	for name, send := range map[string]func(*protocol.Attachment) (protocol.SessionID, error){
		"graph/append": func(a *protocol.Attachment) (protocol.SessionID, error) {
			_, err := d.History.Append(t.Context(), &protocol.GraphAppendParams{SessionID: id, Nodes: nodes(a)})
			return id, err
		},
		"session/new with nodes": func(a *protocol.Attachment) (protocol.SessionID, error) {
			r, err := d.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: t.TempDir(), Nodes: nodes(a)})
			if err != nil {
				return "", err
			}
			return r.SessionID, nil
		},
		"session/new with a first input": func(a *protocol.Attachment) (protocol.SessionID, error) {
			r, err := d.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: t.TempDir(), FirstTurnInput: attached(a)})
			if err != nil {
				return "", err
			}
			return r.SessionID, nil
		},
		"completion/create": func(a *protocol.Attachment) (protocol.SessionID, error) {
			_, err := d.Completions.Create(t.Context(), &protocol.CompletionParams{SessionID: id, Messages: []protocol.Message{message(a)}})
			return "", err
		},
		"an operation": func(a *protocol.Attachment) (protocol.SessionID, error) {
			*queued = *a
			r, err := d.Operations.Command(t.Context(), &protocol.OperationParams{SessionID: id, Name: "queue"})
			if err == nil {
				d.wait(t, r.Inputs[0].TurnID)
			}
			return id, err
		},
		"debug/prompt": func(a *protocol.Attachment) (protocol.SessionID, error) {
			_, err := d.Sessions.PreviewPrompt(t.Context(), &protocol.DebugPromptParams{SessionID: id, Input: attached(a)})
			return "", err
		},
	} {
		for what, c := range map[string]struct {
			a    protocol.Attachment
			want string
		}{
			"a denied URL":                 {protocol.Attachment{Type: "image/png", URL: "https://x.example/y.png"}, "does not allow attachments by URL"},
			"a digest of another session":  {protocol.Attachment{Type: "image/png", Digest: protocol.DigestOf(append([]byte(png), "of another session"...))}, "there is no artifact"},
			"a program":                    {protocol.Attachment{Type: "image/png", Data: []byte("\x7fELF\x00\xff")}, "has contents that models cannot read"},
			"a document, which it refuses": {protocol.Attachment{Type: "application/pdf", Data: []byte("%PDF-1.7")}, "does not take PDF documents"},
		} {
			t.Run("runtime/S15 "+name+" refuses "+what, func(t *testing.T) {
				calls := model.calls()
				if _, err := send(&c.a); err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("the error is %v, want %q", err, c.want)
				}
				if n := model.calls() - calls; n != 0 {
					t.Errorf("the model was called %d times", n)
				}
			})
		}
		t.Run("runtime/S15 "+name+" stores or sends a large image", func(t *testing.T) {
			image := append([]byte(png), bytes.Repeat([]byte(name), 1000)...)
			to, err := send(&protocol.Attachment{Type: "image/png", Data: image})
			if err != nil {
				t.Fatal(err)
			}
			if to == "" {
				return
			}
			row, err := d.store.Session(t.Context(), to)
			if err != nil {
				t.Fatal(err)
			}
			if data, err := d.store.SessionBlob(t.Context(), row.Key, protocol.DigestOf(image), 1<<20); !bytes.Equal(data, image) {
				t.Errorf("the session has %d bytes of the image: %v", len(data), err)
			}
		})
	}
	t.Run("runtime/S15 completion/create reads an image that the session stores", func(t *testing.T) {
		image := append([]byte(png), bytes.Repeat([]byte("stored"), 2000)...)
		digest := d.artifact(t, id, image)
		_, err := d.Completions.Create(t.Context(), &protocol.CompletionParams{SessionID: id, Messages: []protocol.Message{message(&protocol.Attachment{Type: "image/png", Digest: digest})}})
		if err != nil || !bytes.Equal(model.newest(), image) {
			t.Errorf("the model read %d bytes: %v", len(model.newest()), err)
		}
	})
}

// reader is a model that reads the attachments of the last message.
type reader struct {
	mu   sync.Mutex
	n    int
	read []byte // the newest contents
}

func (r *reader) Stream(_ context.Context, req *provider.Request) iter.Seq2[provider.Chunk, error] {
	return func(yield func(provider.Chunk, error) bool) {
		r.mu.Lock()
		r.n++
		for _, p := range req.Messages[len(req.Messages)-1].Parts {
			if a := p.Attachment; a != nil && a.Digest != "" {
				r.read, _ = req.Contents(a.Digest)
			}
		}
		r.mu.Unlock()
		yield(provider.Chunk{Text: "ok", Stop: protocol.StopEnd}, nil)
	}
}

func (r *reader) calls() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n
}

func (r *reader) newest() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.read
}
