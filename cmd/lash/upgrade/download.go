package upgrade

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
)

// Limits in bytes of what is read from the server, so that a wrong answer cannot fill the disk. A
// longer archive is cut, and then has the wrong checksum.
const (
	maxSums    = 1 << 20
	maxArchive = 512 << 20
)

// fetchSums returns the content of checksums.txt.
func (c Config) fetchSums(ctx context.Context) ([]byte, error) {
	body, err := c.get(ctx, "checksums.txt")
	if err != nil {
		return nil, err
	}
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, maxSums))
	if err != nil {
		return nil, fmt.Errorf("download checksums.txt: %w", err)
	}
	return text, nil
}

// get starts to download a file below BaseURL. Any answer but 200 is an error. The caller closes the
// body, and reads it to its end to find out whether the connection was lost.
func (c Config) get(ctx context.Context, file string) (io.ReadCloser, error) {
	at, err := url.Parse(strings.TrimSuffix(c.BaseURL, "/") + "/" + file)
	if err == nil {
		err = allowed(at)
	}
	if err != nil {
		return nil, fmt.Errorf("download %s: %w", file, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("download %s: %w", file, err)
	}
	answer, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("download %s: %w", file, err)
	}
	if answer.StatusCode != http.StatusOK {
		answer.Body.Close()
		return nil, fmt.Errorf("download %s: the server answered %s", at, answer.Status)
	}
	return answer.Body, nil
}

// allowed returns an error for a URL whose answers others could change on the way. Plain HTTP is
// allowed on this machine only.
func allowed(u *url.URL) error {
	ip := net.ParseIP(u.Hostname())
	if u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()) {
		return nil
	}
	return fmt.Errorf("%s is not an https URL; releases are downloaded over https only", u.Redacted())
}

// choose finds the archive for the system of c in the text of checksums.txt. Each line has a digest
// and a name such as lash_0.2.0_linux_amd64.tar.gz, as sha256sum prints them. The name is the only
// place that says which version is the newest, so both can never disagree.
func (c Config) choose(sums []byte) (Release, error) {
	for lines := bufio.NewScanner(bytes.NewReader(sums)); lines.Scan(); {
		digest, file, ok := strings.Cut(lines.Text(), "  ")
		version, ours := strings.CutSuffix(file, "_"+c.system()+".tar.gz")
		version, named := strings.CutPrefix(version, "lash_")
		if ok && ours && named && len(digest) == 2*sha256.Size && !strings.ContainsAny(file, `/\`) {
			return Release{Version: version, file: file, digest: digest}, nil
		}
	}
	return Release{}, fmt.Errorf("checksums.txt at %s has no archive for %s; build lash from source instead", c.BaseURL, c.system())
}

// errDigest means that a download is not the file that was published.
var errDigest = errors.New("the checksum is wrong")

// download stores the archive of a release at path and verifies its digest.
func (c Config) download(ctx context.Context, r Release, path string) error {
	body, err := c.get(ctx, r.file)
	if err != nil {
		return err
	}
	defer body.Close()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(file, sum), io.LimitReader(body, maxArchive))
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("download %s: %w", r.file, err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != strings.ToLower(r.digest) {
		return fmt.Errorf("download %s: %w: it is %s, but checksums.txt has %s; the download may be damaged, or it was changed on the way", r.file, errDigest, got, r.digest)
	}
	return nil
}
