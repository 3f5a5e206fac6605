import hashlib
import io
import re
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from treepiece.data.download import download_topv2
from treepiece.errors import DataError


def make_zip(files, link=None):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
        if link:
            info = zipfile.ZipInfo(link)
            info.external_attr = 0o120777 << 16
            archive.writestr(info, "target")
    return data.getvalue()


FILES = {"TOPv2/alarm_train.tsv": "rows\n" * 20_000, "TOPv2/low_resource_splits/x.tsv": "more\n"}


class Server:
    """A file on loopback; can break off after `cut` bytes, or have no ranges."""

    def __init__(self, body):
        self.body, self.cut, self.ranges, self.status = body, None, True, None
        self.requests = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                server.requests.append(self.headers.get("Range"))
                start = 0
                asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range") or "")
                if asked and server.ranges:
                    start = int(asked[1])
                if server.status or start >= len(server.body):
                    self.send_error(server.status or 416)
                    return
                part = server.body[start:]
                self.send_response(206 if start else 200)
                self.send_header("Content-Length", str(len(part)))
                self.end_headers()
                self.wfile.write(part if server.cut is None else part[: server.cut])

            def log_message(self, *args):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/TOPv2_Dataset.zip"
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()

    def fetch(self, folder, **options):
        digest = hashlib.sha256(self.body).hexdigest()
        return download_topv2(folder, url=self.url, **{"sha256": digest, **options})


@pytest.fixture
def server():
    server = Server(make_zip(FILES))
    yield server
    server.http.shutdown()
    server.http.server_close()


def check(folder):
    assert (folder / "alarm_train.tsv").read_text() == FILES["TOPv2/alarm_train.tsv"]
    assert (folder / "low_resource_splits" / "x.tsv").read_text() == "more\n"
    assert sorted(path.name for path in folder.iterdir()) == ["alarm_train.tsv", "low_resource_splits"]


def test_download(server, tmp_path):
    seen = []
    files = server.fetch(tmp_path / "new", on_bytes=lambda done, total: seen.append((done, total)))
    assert sorted(file.name for file in files) == ["alarm_train.tsv", "x.tsv"]
    assert seen[-1] == (len(server.body), len(server.body))
    check(tmp_path / "new")


@pytest.mark.parametrize("ranges", [True, False])
def test_an_interrupted_download_continues(server, tmp_path, ranges):
    server.cut = 100
    with pytest.raises(DataError, match=r"ended after 100 of [\d,]+ bytes; run the command again to continue"):
        server.fetch(tmp_path)
    server.cut, server.ranges = None, ranges
    server.fetch(tmp_path)
    assert server.requests == [None, "bytes=100-"]
    check(tmp_path)


def test_a_complete_download_that_was_not_unpacked(server, tmp_path):
    (tmp_path / "topv2.zip.part").write_bytes(server.body)
    server.fetch(tmp_path)
    check(tmp_path)


def test_a_wrong_checksum_is_deleted(server, tmp_path):
    with pytest.raises(DataError, match=r"has sha256 .*, expected 0000; it was deleted"):
        server.fetch(tmp_path, sha256="0000")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["../evil.tsv", "/etc/evil.tsv", "a/../../evil.tsv", "a\\..\\evil.tsv"])
def test_paths_that_lead_out_are_refused(server, tmp_path, name):
    server.body = make_zip({"fine.tsv": "", name: "evil"})
    with pytest.raises(DataError, match="which leads out of the folder"):
        server.fetch(tmp_path)
    assert not (tmp_path / "fine.tsv").exists()


def test_links_are_refused(server, tmp_path):
    server.body = make_zip({}, link="link.tsv")
    with pytest.raises(DataError, match=r"holds a link, 'link\.tsv'"):
        server.fetch(tmp_path)


def test_what_is_no_archive(server, tmp_path):
    server.body = b"<html>not found</html>"
    with pytest.raises(DataError, match="not a zip archive"):
        server.fetch(tmp_path)


def test_server_errors(server, tmp_path):
    server.status = 404
    with pytest.raises(DataError, match="cannot be fetched: 404 Not Found"):
        server.fetch(tmp_path)
    with pytest.raises(DataError, match="expected an address that starts with https://"):
        download_topv2(tmp_path, url="file:///etc/passwd")
    for url in ("http://[bad", "http://exämple.com/ü"):
        with pytest.raises(DataError, match="not an address"):
            download_topv2(tmp_path, url=url)
    port = server.http.server_port
    server.http.shutdown()
    server.http.server_close()
    with pytest.raises(DataError, match="cannot be fetched"):
        download_topv2(tmp_path, url=f"http://127.0.0.1:{port}/x")


def test_a_folder_that_cannot_be_written(server, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot be written"):
        server.fetch(tmp_path / "file")
