package param

import (
	"cmp"
	"encoding/json"
	"path"
	"path/filepath"
	"slices"
	"strconv"

	"lashd/engine/authority"
	"lashd/engine/hostrule"
	"lashd/rpc/protocol"
)

// CheckConfig returns an Error for settings that no session can have. It checks the
// settings as the client sent them or as they result from defaults; models, plugins and
// drivers are looked up later by the engine. Pointers are relative to the configuration.
// Callers that embed the configuration in a larger request move the pointers with Under.
func CheckConfig(cfg protocol.Config) error {
	if cfg.Budget.Iterations == 0 || cfg.Budget.Iterations < -1 {
		return Bad("/budget/iterations", "must be a positive number, or -1 for no limit")
	}
	if cfg.Budget.NoProgress < 0 {
		return Bad("/budget/noProgress", "must not be negative")
	}
	if err := checkApproval(cfg.Approval); err != nil {
		return err
	}
	if d := cfg.Unknown.DeadlineMs; d != nil {
		if err := CheckWait("/unknownOutcome/deadlineMs", *d); err != nil {
			return err
		}
	}
	if how := []protocol.DrainPolicy{"", protocol.DrainOne, protocol.DrainMerge}; !slices.Contains(how, cfg.Drain) {
		return NotOneOf("/drain", how)
	}
	return cmp.Or(CheckEffort(cfg.Model), CheckGeneration(cfg.Generation))
}

// CheckEffort returns an Error with a code if the model's settings do not allow its reasoning effort. The model's adapter
// would fail each call with the same code; here nothing has been stored yet.
func CheckEffort(m protocol.ModelSpec) error {
	if _, code, problem := m.UsedEffort(); code != "" {
		return &Error{Pointer: "/effort", Reason: "is wrong: " + problem, Code: code}
	}
	return nil
}

// CheckTurnStart returns an Error if turn/start has params of a wrong form. It does not look at the session, and leaves the contents
// of attachments, turn options and the schema to those that use them.
func CheckTurnStart(p *protocol.TurnStartParams) error {
	if err := cmp.Or(CheckInput(p.Input), CheckPluginInputs(p.PluginInputs)); err != nil {
		return err
	}
	if modes := []protocol.WhenBusy{"", protocol.BusyQueue, protocol.BusyRefuse, protocol.BusySteer}; !slices.Contains(modes, p.WhenBusy) {
		return NotOneOf("/whenBusy", modes)
	}
	if p.Iterations < 0 {
		return Bad("/iterations", "must be at least 1")
	}
	switch o := p.TurnOptions; {
	case o == nil:
	case o.SchemaVersion < 1:
		return Bad("/turnOptions/schemaVersion", "must be at least 1")
	case !json.Valid(o.Payload):
		return Bad("/turnOptions/payload", "must be JSON")
	case len(o.Payload) > protocol.MaxTurnOptions:
		return Bad("/turnOptions/payload", "has %d bytes, at most %d", len(o.Payload), protocol.MaxTurnOptions)
	}
	return nil
}

// CheckCompletion returns an Error if completion/create has params of a wrong form. It leaves the schema to the caller.
func CheckCompletion(p *protocol.CompletionParams) error {
	switch {
	case p.Text != "" && len(p.Messages) > 0:
		return Bad("/text", "cannot be combined with messages")
	case p.Text == "" && len(p.Messages) == 0:
		return Bad("/messages", "must have at least one message, unless there is a text")
	}
	for i := range p.Messages {
		if err := CheckMessage("/messages/"+strconv.Itoa(i), &p.Messages[i]); err != nil {
			return err
		}
	}
	return cmp.Or(CheckGeneration(p.Generation), CheckName("/label", p.Label))
}

// CheckSteer returns an Error for settings of a turn in an input for a turn that runs.
func CheckSteer(p *protocol.TurnStartParams) error {
	switch {
	case p.TurnOptions != nil:
		return Bad("/turnOptions", "cannot be changed in a turn that runs")
	case p.Effort != "":
		return Bad("/effort", "cannot be changed in a turn that runs")
	case p.Iterations != 0:
		return Bad("/iterations", "cannot be changed in a turn that runs")
	case len(p.Schema) > 0:
		return Bad("/schema", "cannot be changed in a turn that runs")
	}
	return nil
}

// checkApproval validates an approval configuration: its mode, its default for unanswered
// questions, the deadline and the rules. The pointers are below /approval. An empty mode
// means that the default applies.
func checkApproval(a protocol.ApprovalConfig) error {
	modes := []protocol.ApprovalMode{protocol.ApproveAllow, protocol.ApproveAsk, protocol.ApproveDeny}
	if a.Mode != "" && !slices.Contains(modes, a.Mode) {
		return NotOneOf("/approval/mode", modes)
	}
	if !a.Sandbox.Known() {
		return NotOneOf("/approval/sandbox", []protocol.SandboxMode{protocol.SandboxReadOnly, protocol.SandboxWorkspace, protocol.SandboxFullAccess})
	}
	if d := a.Default; d != "" && d != protocol.ApproveAllow && d != protocol.ApproveDeny {
		return Bad("/approval/default", "must be allow or deny")
	}
	if err := CheckWait("/approval/deadlineMs", a.DeadlineMs); err != nil {
		return err
	}
	for i, r := range a.Rules {
		if err := CheckRule("/approval/rules/"+strconv.Itoa(i), r); err != nil {
			return err
		}
	}
	return nil
}

// CheckRule validates an approval rule, whose pointer is at. It must name a tool or one of command, path and host, but not two of
// these.
func CheckRule(at string, r protocol.ApprovalRule) error {
	limits := slices.DeleteFunc([]string{r.Command, r.Path, r.Host}, func(s string) bool { return s == "" })
	switch _, err := path.Match(r.Tool, ""); {
	case err != nil:
		return Bad(at+"/tool", "must be the name of a tool or a pattern with *")
	case len(limits) > 1:
		return Bad(at, "must have only one of command, path and host")
	case r.Host != "" && hostProblem(r.Host) != "":
		return Bad(at+"/host", "%s", hostProblem(r.Host))
	case len(limits) == 0 && r.Tool == "":
		return Bad(at, "must have a tool, a command, a path or a host")
	}
	if modes := []protocol.ApprovalMode{protocol.ApproveAllow, protocol.ApproveAsk, protocol.ApproveDeny}; !slices.Contains(modes, r.Action) {
		return NotOneOf(at+"/action", modes)
	}
	return nil
}

// hostProblem says what is wrong with the host of a rule; "" if nothing is.
func hostProblem(host string) string {
	if _, err := hostrule.Parse(host); err != nil {
		return "is no pattern of a host: " + err.Error()
	}
	return ""
}

// CheckGeneration returns an Error for model options that no provider accepts. Limits of a
// specific model are left to its provider.
// The pointers are below /generation. Zero values are valid and leave the choice to the
// provider.
func CheckGeneration(g protocol.GenerationOptions) error {
	if g.MaxOutput < 0 {
		return Bad("/generation/maxOutput", "must not be negative")
	}
	if g.Temperature != nil && *g.Temperature < 0 {
		return Bad("/generation/temperature", "must not be negative")
	}
	for i, s := range g.Stop {
		if s == "" {
			return Bad("/generation/stop/"+strconv.Itoa(i), "must not be empty")
		}
	}
	if levels := []string{"", "low", "medium", "high"}; !slices.Contains(levels, g.Verbosity) {
		return NotOneOf("/generation/verbosity", levels[1:])
	}
	return nil
}

// CheckAuthority returns an Error for an inconsistent authority. The engine decides later
// whether the requester may grant it.
// Pointers are below /authority. It looks at the shape only: empty names, relative roots, too
// many policies, and tools together with noTools.
func CheckAuthority(a *protocol.Authority) error {
	if a.NoTools && len(a.Tools) > 0 {
		return Bad("/authority/noTools", "must not be set together with tools")
	}
	lists := map[string][]string{"/authority/tools": a.Tools, "/authority/hiddenTools": a.Hidden}
	if c := a.Ceiling; c != nil {
		lists["/authority/ceiling/tools"], lists["/authority/ceiling/hiddenTools"] = c.Tools, c.Hidden
	}
	for pointer, names := range lists {
		if i := slices.Index(names, ""); i >= 0 {
			return Bad(pointer+"/"+strconv.Itoa(i), "must not be empty")
		}
	}
	return checkCeiling(a.Ceiling)
}

// checkCeiling validates the ceiling of an authority: the paths of its roots and the
// policies. Nil is valid and means no limit.
// authority.MaxPolicies bounds the work for each later approval.
func checkCeiling(c *protocol.Ceiling) error {
	if c == nil {
		return nil
	}
	if len(c.Policies) > authority.MaxPolicies {
		return Bad("/authority/ceiling/policies", "has %d entries, at most %d", len(c.Policies), authority.MaxPolicies)
	}
	for i, root := range c.Roots {
		if !filepath.IsAbs(root) {
			return Bad("/authority/ceiling/roots/"+strconv.Itoa(i), "must be an absolute path")
		}
	}
	for i, p := range c.Policies {
		if err := checkApproval(p.Approval); err != nil {
			return Under("/authority/ceiling/policies/"+strconv.Itoa(i)+"/approval", "/approval", err)
		}
	}
	return nil
}
