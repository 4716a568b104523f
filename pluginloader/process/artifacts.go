package process

import (
	"context"
	"fmt"
	"sync"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

const (
	chunk        = 1 << 20  // bytes of an artifact that go in one message
	maxArtifacts = 256      // of one state
	maxState     = 64 << 20 // bytes of one state, with its artifacts
)

// artifacts are the bulk of a state that is being written or restored.
type artifacts struct {
	mu      sync.Mutex
	list    []plugin.Artifact
	size    int
	writing bool
}

// write adds data at an offset of an artifact; the first piece, at 0, begins it.
func (a *artifacts) write(name string, offset int, data []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.writing {
		return &plugin.UnavailableError{Capability: "writing artifacts"}
	}
	if a.size += len(data); a.size > maxState {
		return fmt.Errorf("the state has more than %d bytes", maxState)
	}
	last := len(a.list) - 1
	switch {
	case offset == 0 && len(a.list) < maxArtifacts:
		a.list = append(a.list, plugin.Artifact{Name: name, Data: append([]byte(nil), data...)})
	case offset == 0:
		return fmt.Errorf("more than %d artifacts", maxArtifacts)
	case last < 0 || a.list[last].Name != name || len(a.list[last].Data) != offset:
		return fmt.Errorf("nothing of %q ends at %d", name, offset)
	default:
		a.list[last].Data = append(a.list[last].Data, data...)
	}
	return nil
}

var errNotRead = &plugin.UnavailableError{Capability: "reading artifacts"}

// read is a piece of an artifact, and the size of the whole.
func (a *artifacts) read(name string, offset int) ([]byte, int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.writing {
		return nil, 0, errNotRead
	}
	for _, x := range a.list {
		if x.Name == name {
			if offset < 0 || offset > len(x.Data) {
				return nil, 0, fmt.Errorf("%q has %d bytes", name, len(x.Data))
			}
			return x.Data[offset:min(len(x.Data), offset+chunk)], len(x.Data), nil
		}
	}
	return nil, 0, fmt.Errorf("there is no artifact %q", name)
}

// artifactPiece is a piece of an artifact. While state is written or restored it has a name and an offset; what a tool
// stores has a type, is stored at once, and comes back as a reference.
type artifactPiece struct {
	granted
	Name   string `json:"name,omitempty"`
	Offset int    `json:"offset,omitempty"`
	Type   string `json:"type,omitempty"`
	Data   []byte `json:"data"`
}

func artifactWrite(ctx context.Context, g *grant, p *artifactPiece) (*struct {
	Artifact *protocol.ArtifactRef `json:"artifact,omitempty"`
}, error) {
	result := &struct {
		Artifact *protocol.ArtifactRef `json:"artifact,omitempty"`
	}{}
	switch {
	case g.state != nil:
		return result, g.state.write(p.Name, p.Offset, p.Data)
	case g.tool == nil:
		return nil, &plugin.UnavailableError{Capability: "writing artifacts"}
	}
	ref, err := g.tool.WriteArtifact(ctx, p.Type, p.Data)
	if err != nil {
		return nil, err
	}
	g.stored.add(ref.Digest)
	result.Artifact = &ref
	return result, nil
}

func artifactRead(_ context.Context, g *grant, p *struct {
	granted
	Name   string `json:"name"`
	Offset int    `json:"offset,omitempty"`
}) (*struct {
	Data []byte `json:"data"`
	Size int    `json:"size"`
}, error) {
	if g.state == nil {
		return nil, errNotRead
	}
	data, size, err := g.state.read(p.Name, p.Offset)
	return &struct {
		Data []byte `json:"data"`
		Size int    `json:"size"`
	}{data, size}, err
}
