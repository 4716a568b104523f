//go:build unix

package plugins_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// compiled is the plugin of testdata as one that is compiled in.
type compiled struct{}

func (compiled) ID() string { return "notes" }

func (compiled) Build(plugin.BuildContext) (plugin.Plugin, error) {
	return &notes{list: []string{}}, nil
}

// notes is the plugin in one session.
type notes struct {
	mu       sync.Mutex
	list     []string
	revision uint64
}

func (n *notes) Register(r *plugin.Registrar) error {
	r.Tools().Add(n)
	r.Prompt().Hook(func(context.Context, *plugin.PromptContext) ([]plugin.Prompt, error) {
		return []plugin.Prompt{{Slot: plugin.SlotGuidance, Content: fmt.Sprintf("%d notes", len(n.all()))}}, nil
	})
	r.Output().Stream(func(_ context.Context, c plugin.StreamChunk) (plugin.StreamChunk, error) {
		c.Text = strings.ToUpper(c.Text)
		return c, nil
	})
	r.Catalog().Contribute(func(context.Context, *plugin.CatalogContext) ([]string, error) {
		if len(n.all()) > 0 {
			return []string{"hidden", "spare"}, nil
		}
		return []string{"hidden"}, nil
	})
	r.Protocol().Prose(func(_ context.Context, text string) (string, error) {
		return strings.ReplaceAll(text, "<code>", ""), nil
	})
	r.Operations().Query(protocol.OperationInfo{Name: "notes.list"}, func(context.Context, *plugin.OperationCall) (json.RawMessage, error) {
		return json.Marshal(n.all())
	})
	r.Operations().Command(protocol.OperationInfo{Name: "notes.add"}, func(_ context.Context, c *plugin.OperationCall) (*plugin.OperationResult, error) {
		n.add(string(c.Args))
		return &plugin.OperationResult{}, nil
	})
	return nil
}

func (n *notes) all() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.list[:len(n.list):len(n.list)]
}

func (n *notes) add(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, text)
	n.revision++
}

func (n *notes) Tools() []tool.Tool {
	return []tool.Tool{{Manifest: protocol.ToolManifest{Name: "note", Description: "Note something."}}}
}

func (n *notes) Execute(_ context.Context, call tool.Invocation) (tool.Result, error) {
	n.add(string(call.Args))
	return tool.Result{Output: protocol.Succeed("noted")}, nil
}

func (n *notes) Revision() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.revision
}

func (n *notes) Snapshot(context.Context, *plugin.ArtifactWriter) (json.RawMessage, error) {
	return json.Marshal(n.all())
}

func (n *notes) Restore(_ context.Context, m plugin.Meta, _ *plugin.ArtifactReader) error {
	list := []string{}
	if m.State != nil {
		if err := json.Unmarshal(m.State, &list); err != nil {
			return err
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = list
	return nil
}
