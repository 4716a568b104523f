package process

import (
	"context"
	"crypto/sha256"
	"encoding/json"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// omitted is the answer of the catalog hook: names of tools.
type omitted struct {
	Remove []string `json:"remove,omitempty"`
}

// omission is what the plugin has left out of the catalog. It holds for the same tools as long as the plugin's state is the same.
type omission struct {
	asked    [sha256.Size]byte
	revision uint64
	remove   []string
}

// catalog asks the plugin what to leave out, unless it has said so. What an error is forgiven with holds for now only.
func (h *hook) catalog(ctx context.Context, cc *plugin.CatalogContext) ([]string, error) {
	asked, err := json.Marshal(cc)
	if err != nil {
		return nil, err
	}
	said, known := h.said(sha256.Sum256(asked))
	if known {
		return said.remove, nil
	}
	answer, err := called[omitted](ctx, h, moment{context: json.RawMessage(asked)})
	switch {
	case err == nil:
		said.remove = existing(answer.Remove, cc.Manifests)
		h.keepOmission(said)
		return said.remove, nil
	case h.forgives(ctx, err):
		return nil, tool.ErrForNow
	}
	return nil, err
}

// existing are the names that tools have. What else the plugin says is not kept, however much that is.
func existing(names []string, tools []protocol.ToolManifest) (remove []string) {
	said := map[string]bool{}
	for _, name := range names {
		said[name] = true
	}
	for _, m := range tools {
		if said[m.Name] {
			remove = append(remove, m.Name)
		}
	}
	return remove
}

// said is what the plugin has said when it was asked the same with the same state, or else what it is asked now.
func (i *instance) said(asked [sha256.Size]byte) (o omission, known bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := omission{asked: asked, revision: i.revision}
	if o := i.omission; o != nil && o.asked == now.asked && o.revision == now.revision {
		return *o, true
	}
	return now, false
}

func (i *instance) keepOmission(o omission) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.omission = &o
}
