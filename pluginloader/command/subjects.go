package command

import (
	"path"
	"slices"

	"lashd/engine/approval"
	"lashd/engine/plugin"
	"lashd/pluginloader/manifest"
	"lashd/rpc/protocol"
)

// subjects are what a tool call acts on, for the filters of hooks. Not safe for concurrent use.
type subjects struct {
	call *plugin.ToolCallContext
	cwd  string             // the workspace of the session
	dir  string             // in which relative paths of filters begin
	at   *approval.Subjects // resolved on first use
}

// fit reports whether a filter lets a hook run for a call, or for one file of it. If that is unknown, it does: the hook may be there to
// refuse the call.
func (s *subjects) fit(f *manifest.Filter, file string) bool {
	if f == nil || s == nil || s.call.Entry == nil {
		return true
	}
	if s.at == nil {
		s.at = approval.SubjectsOf(s.cwd, s.call.Entry, s.call.Args)
	}
	if approval.Compile(s.dir, protocol.LevelSession, "the hook", f.Rules).Concern(s.at.Only(file)) {
		return true
	}
	return s.at.Empty() && s.names(f)
}

// names reports whether a filter names the tool of the call.
func (s *subjects) names(f *manifest.Filter) bool {
	m := s.call.Entry.Manifest
	return slices.ContainsFunc(f.Tools, func(pattern string) bool {
		named, _ := path.Match(pattern, m.Name) // a pattern was checked when it was read
		like, _ := path.Match(pattern, m.Like)
		return named || like
	})
}
