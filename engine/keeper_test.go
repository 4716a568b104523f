package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// keeper is a plugin whose state is a text and some bulk data for each session. operations_test.go has its operations.
type keeper struct {
	id       string
	version  string
	register func(*kept, *plugin.Registrar)

	mu       sync.Mutex
	captures int
	restored []string // "session version state" of each restore
	built    []plugin.BuildContext
	broken   error // of capturing
	refuses  error // of restoring
	restless bool  // changes while it is captured
	down     int
}

// kept is the keeper's instance in one session.
type kept struct {
	*keeper
	session  protocol.SessionID
	revision uint64
	text     string
	bulk     string

	restoring func() // called on a restore; nil: not observed
}

func (k *keeper) ID() string {
	if k.id == "" {
		return "keeper"
	}
	return k.id
}

func (k *keeper) Build(ctx plugin.BuildContext) (plugin.Plugin, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.built = append(k.built, ctx)
	return &kept{keeper: k, session: ctx.SessionID}, nil
}

func (k *keeper) Shutdown(context.Context) error { k.down++; return nil }

func (k *kept) Register(r *plugin.Registrar) error {
	r.Operations().Command(protocol.OperationInfo{Name: k.ID() + ".keep"}, k.keep)
	r.Operations().Query(protocol.OperationInfo{Name: k.ID() + ".kept"}, k.tell)
	if k.register != nil {
		k.register(k, r)
	}
	return nil
}

func (k *kept) Version() string {
	if k.version == "" {
		return "1"
	}
	return k.version
}

func (k *kept) Revision() uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.revision
}

type keeping struct{ Text, Bulk string }

func (k *kept) set(text, bulk string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.text, k.bulk = text, bulk
	k.revision++
}

func (k *kept) keep(_ context.Context, call *plugin.OperationCall) (*plugin.OperationResult, error) {
	var args keeping
	if err := json.Unmarshal(call.Args, &args); err != nil {
		return nil, err
	}
	k.set(args.Text, args.Bulk)
	return &plugin.OperationResult{}, nil
}

func (k *kept) tell(context.Context, *plugin.OperationCall) (json.RawMessage, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return json.Marshal(keeping{k.text, k.bulk})
}

func (k *kept) Snapshot(_ context.Context, w *plugin.ArtifactWriter) (json.RawMessage, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.captures++
	if k.restless {
		k.revision++
	}
	if k.bulk != "" {
		w.Write("bulk", []byte(k.bulk))
	}
	state, err := json.Marshal(k.text)
	return state, errors.Join(err, k.broken)
}

func (k *kept) Restore(_ context.Context, meta plugin.Meta, r *plugin.ArtifactReader) error {
	if k.restoring != nil {
		k.restoring()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.restored = append(k.restored, strings.TrimSpace(meta.Version+" "+string(meta.State)))
	bulk, _ := r.Read("bulk")
	k.text, k.bulk, k.revision = "", string(bulk), meta.Revision
	if meta.State == nil {
		return k.refuses
	}
	return errors.Join(k.refuses, json.Unmarshal(meta.State, &k.text))
}

// change changes settings of the test under the lock, as plugins are called from several goroutines.
func (k *keeper) change(f func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f()
}

// seen returns what the plugin recorded.
func seen[T any](k *keeper, of func() T) T {
	k.mu.Lock()
	defer k.mu.Unlock()
	return of()
}

// holds sets the keeper's state in a session.
func (d *daemon) holds(t testing.TB, id protocol.SessionID, text, bulk string) *protocol.OperationReceipt {
	t.Helper()
	args, err := json.Marshal(keeping{text, bulk})
	if err != nil {
		t.Fatal(err)
	}
	return must[*protocol.OperationReceipt](t)(d.Operations.Command(t.Context(), &protocol.OperationParams{SessionID: id, Name: "keeper.keep", Args: args}))
}

// held returns the keeper's state in a session.
func (d *daemon) held(t *testing.T, id protocol.SessionID, who string) keeping {
	t.Helper()
	res := must[*protocol.OperationQueryResult](t)(d.Operations.Query(t.Context(), &protocol.OperationQueryParams{SessionID: id, Name: who + ".kept"}))
	var is keeping
	if err := json.Unmarshal(res.Output, &is); err != nil {
		t.Fatal(err)
	}
	return is
}

// plugged returns the stored plugin state of a session.
func (d *daemon) plugged(t *testing.T, id protocol.SessionID) *protocol.SnapshotReadResult {
	t.Helper()
	name := &protocol.SnapshotMutationParams{SessionID: id, Name: "look"}
	must[*protocol.SnapshotResult](t)(d.Snapshots.Create(t.Context(), name))
	defer func() { must[*protocol.SeqResult](t)(d.Snapshots.Delete(t.Context(), name)) }()
	return must[*protocol.SnapshotReadResult](t)(d.Snapshots.Read(t.Context(), &protocol.SnapshotParams{SessionID: id, Name: "look"}))
}

func (d *daemon) blob(t *testing.T, digest protocol.Digest) (string, bool) {
	t.Helper()
	data, err := d.store.Blob(t.Context(), digest)
	if err != nil && !errors.Is(err, persistence.ErrNotFound) {
		t.Fatal(err)
	}
	return string(data), err == nil
}

func with(factories ...plugin.Factory) setup {
	return setup{model: replies(scripted.Reply{Text: "ok"}), plugins: factories}
}
