package workspace

import (
	"context"
	"fmt"
	"io/fs"
	"strings"

	"lashd/rpc/protocol"
)

const (
	listDepth   = 3
	listEntries = 500
)

const describeList = "Show the tree of a directory of the workspace, three levels deep, at most 500 entries. Directories end " +
	"in a slash; those that git ignores are named but not opened."

type listArgs struct {
	Path string `json:"path,omitempty" jsonschema:"directory to list; the workspace if not given"`
}

type listValue struct {
	Path    string `json:"path"`
	Entries int    `json:"entries"`
	More    bool   `json:"more,omitempty"`
}

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
		fmt.Fprintf(&text, "[There are more than %d entries. List a directory of these.]\n", listEntries)
	}
	if value.Entries == 0 {
		text.WriteString("[The directory is empty.]\n")
	}
	text.WriteString(w.note())
	value.More = value.More || w.cut != ""
	return withValue(strings.ToValidUTF8(text.String(), "\uFFFD"), value)
}

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
