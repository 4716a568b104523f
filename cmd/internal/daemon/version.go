package daemon

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

// programWait is the limit for lashd to print its version.
const programWait = 2 * time.Second

// otherVersion returns what to do about a running daemon of another version: which of the two is newer, and the command or the
// installation that makes them the same.
func (e *Environment) otherVersion(ctx context.Context, running string) string {
	installed := e.installed(ctx)
	order := "older"
	if semver.Compare("v"+running, "v"+Version) > 0 {
		order = "newer"
	}
	text := fmt.Sprintf("the running lashd %s is %s than %s %s; ", running, order, e.Name, Version)
	switch {
	case installed == Version:
		return text + "to replace it, run: lash stop (the next command starts lashd " + Version + ")"
	case installed == "":
		return text + "install lash and lashd from one release, then run: lash stop"
	}
	return text + fmt.Sprintf("the installed lashd is %s: install lash and lashd from one release, then run: lash stop", installed)
}

// installed returns the version of the lashd that the next command would start; empty if that is unknown.
func (e *Environment) installed(ctx context.Context) string {
	if e.Name == "lashd" {
		return Version
	}
	program, err := e.Program()
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, programWait)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, "version").Output()
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(strings.TrimSpace(string(out)), "lashd ")
}
