package promptcontext

import (
	"encoding/json"
	"regexp"
	"slices"
	"sync"

	"lashd/rpc/protocol"
)

// touched returns the paths that the newest calls of a conversation read or edited, as the
// calls name them. The newest calls are those after the newest reply with calls, or of the
// newest code cell.
func touched(messages []protocol.Message) (paths []string) {
	done := map[protocol.CallID]bool{}
	for i := len(messages) - 1; i >= 0; i-- {
		calls := false
		for _, p := range slices.Backward(messages[i].Parts) {
			switch {
			case p.Result != nil:
				done[p.Result.CallID] = p.Result.Output.Status == protocol.OutputSuccess
			case p.Cell != nil:
				calls = true
				paths = append(paths, ofCell(p.Cell)...)
			case p.Call != nil:
				calls = true
				if done[p.Call.CallID] {
					paths = append(paths, pathsOf(p.Call.Name, p.Call.Args)...)
				}
			}
		}
		if calls {
			break
		}
	}
	return distinct(paths)
}

// ofCell returns the paths that the calls of a code cell read or edited.
func ofCell(c *protocol.CodeResult) (paths []string) {
	for _, call := range c.Calls {
		if call.Status == protocol.ItemDone {
			paths = append(paths, pathsOf(call.Tool, call.Args)...)
		}
	}
	return paths
}

// pathsOf returns the paths of files that a call names. Calls of other tools than those that
// read or edit single files have none.
func pathsOf(tool string, args json.RawMessage) (paths []string) {
	var a struct {
		Path  string `json:"path"`
		Patch string `json:"patch"`
		Calls []struct {
			Name string          `json:"name"`
			Args json.RawMessage `json:"args"`
		} `json:"calls"`
	}
	if json.Unmarshal(args, &a) != nil {
		return nil
	}
	switch tool {
	case "read", "write", "edit":
		return []string{a.Path}
	case "patch":
		for _, m := range patchFile().FindAllStringSubmatch(a.Patch, -1) {
			paths = append(paths, m[1])
		}
	case "batch":
		for _, c := range a.Calls {
			if c.Name != "batch" {
				paths = append(paths, pathsOf(c.Name, c.Args)...)
			}
		}
	}
	return paths
}

// patchFile matches the lines of a patch that name a file.
var patchFile = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^\*\*\* (?:Add File|Update File|Delete File|Move to): (.+?)\s*$`)
})
