package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"runtime"

	"lashd/cmd/internal/daemon"
)

// errNoDesktop says that there is no desktop whose browser the person sees.
var errNoDesktop = errors.New("there is no desktop here")

// browserCommand returns the command that opens addresses in the browser of the desktop; nil if there is none. Over SSH, the desktop of another machine
// counts only if its display was forwarded, so that the browser appears where the person is.
func browserCommand(system string, getenv func(string) string) []string {
	display := getenv("DISPLAY") != "" || getenv("WAYLAND_DISPLAY") != ""
	remote := getenv("SSH_CONNECTION") != "" || getenv("SSH_CLIENT") != "" || getenv("SSH_TTY") != ""
	switch {
	case system == "darwin" && !remote:
		return []string{"open"}
	case system == "windows" && !remote:
		return []string{"rundll32", "url.dll,FileProtocolHandler"}
	case system != "darwin" && system != "windows" && display:
		return []string{"xdg-open"}
	}
	return nil
}

// openBrowser opens a web address in the browser of the desktop, which outlives lash. failed gets an error if the command that opens it fails later.
func openBrowser(address string, failed chan<- error) error {
	command := browserCommand(runtime.GOOS, os.Getenv)
	if command == nil {
		return errNoDesktop
	}
	if u, err := url.Parse(address); err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return errors.New("it is no web address")
	}
	cmd := exec.CommandContext(context.Background(), command[0], append(command[1:], address)...)
	daemon.Detach(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() {
		if err := cmd.Wait(); err != nil {
			failed <- fmt.Errorf("%s: %w", command[0], err)
		}
	}()
	return nil
}
