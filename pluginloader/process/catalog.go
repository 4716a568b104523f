package process

import (
	"context"
	"crypto/sha256"
	"encoding/json"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// omitted is the plugin's answer to the catalog hook: names of tools to hide.
type omitted struct {
	Remove []string `json:"remove,omitempty"`
}

// omission caches the answer to the catalog hook. It is valid for the same tools as long as the
// plugin's state has the same revision.
type omission struct {
	asked    [sha256.Size]byte // hash of the hook's context
	revision uint64
	remove   []string
}

// catalog runs the catalog hook, unless the last answer is still valid. The session waits for the
// catalog, so the plugin should not be asked needlessly. After an error that OnError allows, no
// tools are hidden, and the next catalog runs the hook again.
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

// existing returns the names that belong to tools. Other names are dropped, so a plugin cannot make
// lashd store many.
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

// said returns the cached answer if it is valid, and otherwise an omission to fill in.
func (i *instance) said(asked [sha256.Size]byte) (o omission, known bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := omission{asked: asked, revision: i.revision}
	if o := i.omission; o != nil && o.asked == now.asked && o.revision == now.revision {
		return *o, true
	}
	return now, false
}

// keepOmission caches an answer.
func (i *instance) keepOmission(o omission) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.omission = &o
}
