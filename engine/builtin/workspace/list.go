package workspace

import (
	"context"
	"fmt"
	"io/fs"
	"strings"

	"lashd/rpc/protocol"
)

const (
	// listDepth and listEntries limit the tree that list returns.
	listDepth   = 3
	listEntries = 500
)

// describeList is the description of list that the model reads.
const describeList = "List a directory of the workspace as a tree, three levels deep, at most 500 entries. Directories end " +
	"with a slash. Directories that git ignores are listed without their contents."

// listArgs are the arguments of list.
// The schema of the tool is inferred from the struct.
type listArgs struct {
	Path string `json:"path,omitempty" jsonschema:"directory to list (default: the workspace)"`
}

// listValue is the structured result of list.
// Entries counts the entries that the text shows. More means that the tree has more of them.
type listValue struct {
	Path    string `json:"path"`
	Entries int    `json:"entries"`
	More    bool   `json:"more,omitempty"`
}

// list is the list tool. It writes the tree in order of names, indented by depth. It does
// not enter directories that git ignores or that are too deep.
// The walk's limits also apply; the text then ends with a note, and More is set. Symbolic links
// are listed but not followed.
func (f *files) list(ctx context.Context, req request[listArgs]) (protocol.ToolOutput, error) {
	top, err := req.view.directory(req.args.Path)
	if err != nil {
		return protocol.ToolOutput{}, fmt.Errorf("list %s: %w", req.args.Path, err)
	}
	defer top.dir.close()
	value := listValue{Path: top.path()}
	var text strings.Builder
	w := req.view.walk(top, func(e found, ignored bool) (bool, error) {
		if value.Entries == listEntries {
			value.More = true
			return false, errEnough
		}
		value.Entries++
		level := strings.Count(under(top.path(), e.path), "/")
		open := level+1 < listDepth && !ignored
		fmt.Fprintf(&text, "%s%s%s\n", strings.Repeat("  ", level), e.info.Name(), suffix(e.info.Mode(), ignored))
		return open, nil
	})
	if err := w.run(ctx, top.dir); err != nil {
		return protocol.ToolOutput{}, fmt.Errorf("list %s: %w", req.args.Path, err)
	}
	if value.More {
		fmt.Fprintf(&text, "[There are more than %d entries. List one of these directories.]\n", listEntries)
	}
	if value.Entries == 0 {
		text.WriteString("[The directory is empty.]\n")
	}
	text.WriteString(w.note())
	value.More = value.More || w.cut != ""
	return withValue(strings.ToValidUTF8(text.String(), "\uFFFD"), value)
}

// suffix returns the mark after the name of an entry.
func suffix(mode fs.FileMode, ignored bool) string {
	switch {
	case mode.IsDir() && ignored:
		return "/ (ignored)"
	case mode.IsDir():
		return "/"
	case mode&fs.ModeSymlink != 0:
		return "@"
	case !mode.IsRegular():
		return " (not a regular file)"
	}
	return ""
}
