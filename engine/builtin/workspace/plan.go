package workspace

import (
	"context"
	"fmt"
	"os"
	"strings"

	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// plan is what a call will change, before it changes anything: the new contents of files, after
// checking that the changes are possible. It keeps the directories of all changed files open until
// the end.
type plan struct {
	view    *view
	changes []*change
	// said has one line for the model for each change.
	said []string
}

// change runs a call that changes files: it plans the changes and commits them together, while no
// other call of the session changes files.
func (f *files) change(ctx context.Context, v *view, host tool.Host, make func(*plan) error) (out protocol.ToolOutput, err error) {
	err = f.exclusive(ctx, func() error {
		p := &plan{view: v}
		defer p.close()
		if err := make(p); err != nil {
			return err
		}
		out, err = p.commit(ctx, host)
		return err
	})
	return out, err
}

// commit makes the planned changes and returns the result for the model.
func (p *plan) commit(ctx context.Context, host tool.Host) (protocol.ToolOutput, error) {
	text := strings.Join(p.said, "\n")
	if len(p.changes) == 0 {
		return protocol.Succeed(text), nil
	}
	if err := commit(ctx, host, p.view, p.changes); err != nil {
		return protocol.ToolOutput{}, err
	}
	return changed(text, p.changes)
}

// close closes the directories of all planned changes, also after an error.
func (p *plan) close() {
	for _, c := range p.changes {
		c.at.dir.close()
	}
}

// drop forgets the planned changes, because there is nothing to change.
func (p *plan) drop() {
	p.close()
	p.changes = nil
}

// at locates a path, which no other section may name. The plan owns the place and closes
// it.
// Two names of one file, such as hard links, count as the same file.
func (p *plan) at(name string) (*change, error) {
	at, err := p.view.locate(name)
	if err != nil {
		return nil, err
	}
	c := create(at, nil)
	p.changes = append(p.changes, c)
	for _, other := range p.changes[:len(p.changes)-1] {
		same := other.at.path() == at.path()
		if at.info != nil && other.at.info != nil {
			same = same || os.SameFile(at.info, other.at.info)
		}
		if same {
			return nil, refuse("invalid_patch", "the patch contains this file twice")
		}
	}
	return c, nil
}

// read reads the content that a change starts from, which must be the one that a person saw. The file keeps its mode.
func (p *plan) read(c *change) (err error) {
	if c.before, err = p.view.content(c.at); err != nil {
		return err
	}
	c.mode = c.at.info.Mode().Perm()
	return p.view.asShown(c)
}

// say adds a line for the model. format has one verb, for the path of the changed file.
func (p *plan) say(format string, c *change) {
	p.said = append(p.said, fmt.Sprintf(format, c.at.path()))
}
