package process

import (
	"context"
	"fmt"
	"sync"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

const (
	// Limits of a session's plugin state.
	chunk        = 1 << 20  // bytes of artifacts in one message
	maxArtifacts = 256      // per state
	maxState     = 64 << 20 // bytes of a state with its artifacts
)

// artifacts holds the artifacts of a state while the plugin writes or reads them. It belongs to one
// snapshot/write or snapshot/restore call and is safe for concurrent use. Artifacts go in pieces,
// because a message has a maximum length.
type artifacts struct {
	mu      sync.Mutex
	list    []plugin.Artifact
	size    int  // bytes of all artifacts so far
	writing bool // the plugin writes; otherwise it reads
}

// write adds a piece to an artifact. The piece at offset 0 creates the artifact. Later pieces must
// follow without gaps, before the next artifact starts.
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
		return fmt.Errorf("the pieces of artifact %q do not reach offset %d", name, offset)
	default:
		a.list[last].Data = append(a.list[last].Data, data...)
	}
	return nil
}

// errNotRead rejects reading outside a restore.
var errNotRead = &plugin.UnavailableError{Capability: "reading artifacts"}

// read returns at most chunk bytes of an artifact at an offset, and the artifact's size.
func (a *artifacts) read(name string, offset int) ([]byte, int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.writing {
		return nil, 0, errNotRead
	}
	for _, x := range a.list {
		if x.Name == name {
			if offset < 0 || offset > len(x.Data) {
				return nil, 0, fmt.Errorf("the artifact %q has only %d bytes", name, len(x.Data))
			}
			return x.Data[offset:min(len(x.Data), offset+chunk)], len(x.Data), nil
		}
	}
	return nil, 0, fmt.Errorf("no artifact %q", name)
}

// artifactPiece holds the parameters of host/artifactWrite. In a call about state, Name and Offset
// say where the piece belongs. In a tool call, Type is the media type. That artifact is complete,
// is stored at once, and the answer refers to it.
type artifactPiece struct {
	granted
	Name   string `json:"name,omitempty"`
	Offset int    `json:"offset,omitempty"`
	Type   string `json:"type,omitempty"`
	Data   []byte `json:"data"`
}

// artifactWrite implements host/artifactWrite.
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

// artifactRead implements host/artifactRead, which a plugin calls while its state is restored.
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
