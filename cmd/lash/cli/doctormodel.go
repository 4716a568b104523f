package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"lashd/cmd/internal/config"
	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/cmd/internal/diagnosis"
	"lashd/engine/models"
	"lashd/rpc/protocol"
)

// checkModels checks whether the servers of all models accept requests with the
// keys in the environment. Each check is one small request over the network.
func checkModels(ctx context.Context, d *diagnosis.Diagnosis, e *daemon.Environment, cfg config.Config) {
	source, err := cfg.Source(config.OpenKeySources(e.Home, cfg, ""), config.NotSet)
	if err != nil {
		return // the check of the configuration reports it
	}
	all := source.Models()
	if len(all) == 0 {
		noteNoModel(ctx, d, e)
	}
	progress := console.Begin("asking the model servers", "Ctrl-C cancels the checks")
	defer progress.End()
	for _, m := range onePerServer(all, func(m models.Model) string { return m.Spec.Provider }) {
		progress.Far("%s", m.Spec.Provider)
		noteModel(d, m.Name, m.Spec.Provider, m.Problem(ctx))
	}
}

// askModels does the same check in the daemon, with the keys of the daemon. A key
// that only this shell has is not a problem: lash run passes it to the daemon.
func askModels(ctx context.Context, d *diagnosis.Diagnosis, e *daemon.Environment, l *daemon.Link) {
	progress := console.Begin("asking the model servers", "Ctrl-C cancels the checks")
	defer progress.End()
	var r protocol.ModelListResult
	if err := l.Call(ctx, "model/list", protocol.ModelListParams{Check: true}, &r); err != nil {
		d.Note("model", "", err, "see "+l.Daemon.DataDir+"/lashd.log")
		return
	}
	if len(r.Data) == 0 {
		noteNoModel(ctx, d, e)
	}
	here := slices.ContainsFunc(l.Daemon.KeysWanted, func(name string) bool { return os.Getenv(name) != "" })
	for _, m := range onePerServer(r.Data, func(m protocol.ModelInfo) string { return m.Model.Provider }) {
		if m.Problem != nil && m.Problem.Code == missingKey && here {
			d.Note("model", m.Name+": the daemon has no key yet; lash run and lash chat pass the key of this shell to it", nil, "")
			continue
		}
		noteModel(d, m.Name, m.Model.Provider, m.Problem)
	}
}

// onePerServer returns the first model of each provider: all models of a provider share its server and its key.
func onePerServer[M any](models []M, provider func(M) string) []M {
	seen := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(models), func(m M) bool {
		again := seen[provider(m)]
		seen[provider(m)] = true
		return again
	})
}

// noteNoModel adds the failed check of an installation without any model.
func noteNoModel(ctx context.Context, d *diagnosis.Diagnosis, e *daemon.Environment) {
	d.Note("model", "", errors.New("no model is set up, because no provider has an API key"), "lash login; or "+wayToLocal(ctx, e)+"; or lashd demo, to try lashd without a model")
}

// missingKey is the issue code for a model without its API key.
const missingKey = "missing_key"

// noteModel adds the check of a model; problem is nil if its server accepts
// requests.
func noteModel(d *diagnosis.Diagnosis, name, server string, problem *protocol.Issue) {
	if problem == nil {
		d.Note("model", name+": "+server+" accepts requests", nil, "")
		return
	}
	d.Note("model", "", fmt.Errorf("%s: %s", name, problem.Message), modelRemedy(problem.Code))
}

// modelRemedy says what to do about a failing model server, by issue code. The
// codes come from the provider; unknown ones get general advice.
func modelRemedy(code string) string {
	switch code {
	case missingKey:
		return "run lash login, or export the API key"
	case "connect_failed", "request_timeout":
		return "start the server, or correct base_url in config.toml"
	case "invalid_base_url", "redirected", "not_found":
		return "correct base_url in config.toml"
	case "invalid_api_key", "unauthorized", "forbidden", "authentication_error", "invalid_key":
		return "export a valid key, then restart the daemon: lash stop; the next command starts it"
	}
	return "follow the message and try again"
}

const (
	leastDisk  = 256 << 20 // least free disk space in bytes: room for the growth of the database, its log and a backup
	leastFiles = 1024      // least limit of open files; a session with plugins needs about 20, a client one
)

// checkDisk checks whether the disk of the data directory is writable and has free
// space. It is skipped on systems that do not report it.
func checkDisk(d *diagnosis.Diagnosis, dir string) {
	free, err := freeSpace(dir)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return
	case err == nil && free < leastDisk:
		err = fmt.Errorf("only %d MiB free in %s", free>>20, dir)
	}
	d.Note("disk", fmt.Sprintf("%d MiB free, %s is writable", free>>20, dir), err, "free disk space, or make the directory writable")
}

// checkFiles checks the limit of open files; 0 means that it is unknown. It also
// fails if 90 percent of the limit is in use.
func checkFiles(d *diagnosis.Diagnosis, open int, limit int64) {
	if limit == 0 {
		return
	}
	var err error
	if limit < leastFiles || int64(open) > limit/10*9 {
		err = fmt.Errorf("%d open files, the limit is %d", open, limit)
	}
	d.Note("files", fmt.Sprintf("%d open, limit %d", open, limit), err, "raise the limit (ulimit -n 4096) and restart the daemon")
}
