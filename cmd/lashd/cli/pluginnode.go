package cli

import (
	"fmt"
	"os/exec"
	"strings"
)

// The oldest Node that runs TypeScript without a flag.
const (
	nodeMajor = 22
	nodeMinor = 18
)

// checkNode refuses a Node that is missing or too old for a plugin in TypeScript. Look finds a program, as exec.LookPath does; version
// asks it for its version.
func checkNode(look func(string) (string, error), version func(path string) (string, error)) error {
	const need = "a plugin in TypeScript needs Node 22.18 or newer, which runs it without a build"
	const instead = "install it, or use --lang python, go or command"
	path, err := look("node")
	if err != nil {
		return fmt.Errorf("%s, and there is no node in the PATH; %s", need, instead)
	}
	found, err := version(path)
	if err != nil {
		return fmt.Errorf("%s, and %s --version fails: %w; %s", need, path, err, instead)
	}
	var major, minor int
	if _, err := fmt.Sscanf(strings.TrimSpace(found), "v%d.%d", &major, &minor); err != nil {
		return fmt.Errorf("%s, and %s says it is %q; %s", need, path, strings.TrimSpace(found), instead)
	}
	if major < nodeMajor || major == nodeMajor && minor < nodeMinor || major == 23 && minor < 6 {
		return fmt.Errorf("%s, and %s is %s; %s", need, path, strings.TrimSpace(found), instead)
	}
	return nil
}

func nodeVersion(path string) (string, error) {
	out, err := exec.Command(path, "--version").Output()
	return string(out), err
}
