"""OpenStack Swift on one machine, in one process, speaking S3: accounts, containers and objects in a folder.

    python3 server.py FOLDER PORT ACCESS_KEY SECRET_KEY

A real server with a disk under it: it checks signatures (version 4) and the hash of what is sent, knows multipart
uploads with their smallest part of 5 MB, and finds its objects again when it is started anew.
"""

import eventlet

eventlet.monkey_patch()

import os
import sys
from array import array

from eventlet import wsgi
from swift.account.server import AccountController
from swift.common import utils
from swift.common.ring import RingData
from swift.common.storage_policy import reload_storage_policies
from swift.common.wsgi import SwiftHttpProtocol, loadapp
from swift.container.server import ContainerController
from swift.obj.server import ObjectController

PROXY = """
[DEFAULT]
swift_dir = {folder}
[pipeline:main]
pipeline = catch_errors gatekeeper listing_formats s3api tempauth slo proxy-server
[app:proxy-server]
use = egg:swift#proxy
allow_account_management = true
account_autocreate = true
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:gatekeeper]
use = egg:swift#gatekeeper
[filter:listing_formats]
use = egg:swift#listing_formats
[filter:s3api]
use = egg:swift#s3api
location = us-east-1
[filter:tempauth]
use = egg:swift#tempauth
user_quarry_{user} = {secret} .admin
[filter:slo]
use = egg:swift#slo
"""


def main(folder, port, access_key, secret):
    account, user = access_key.split(":")
    assert account == "quarry"
    os.makedirs(f"{folder}/devices/disk", exist_ok=True)
    write(f"{folder}/swift.conf", "[swift-hash]\nswift_hash_path_suffix = test\n")
    write(f"{folder}/proxy.conf", PROXY.format(folder=folder, user=user, secret=secret))
    utils.set_swift_dir(folder)
    reload_storage_policies()
    os.chdir(folder)
    conf = {
        "swift_dir": folder,
        "devices": f"{folder}/devices",
        "mount_check": "false",
        "fallocate_reserve": "0",
        "disable_fallocate": "true",
        "log_level": "ERROR",
    }
    for name, controller in (
        ("account", AccountController),
        ("container", ContainerController),
        ("object", ObjectController),
    ):
        listening = eventlet.listen(("127.0.0.1", 0))
        ring(f"{folder}/{name}.ring.gz", listening.getsockname()[1])
        eventlet.spawn(serve, listening, controller(conf, utils.get_logger(conf, name)))
    proxy, cache = loadapp(f"{folder}/proxy.conf"), Cache()

    def with_cache(environ, start_response):
        environ["swift.cache"] = cache
        return proxy(environ, start_response)

    serve(eventlet.listen(("127.0.0.1", port), backlog=512), with_cache)


class Cache:
    """In the place of memcached, which keeps the tokens that requests inside the server are made with."""

    def __init__(self):
        self.values = {}

    def get(self, key, raise_on_error=False):
        return self.values.get(key)

    def set(self, key, value, **_):
        self.values[key] = value

    def delete(self, key, **_):
        self.values.pop(key, None)

    def incr(self, key, delta=1, **_):
        self.values[key] = self.values.get(key, 0) + delta
        return self.values[key]


def ring(path, port):
    """Everything is on the one disk, once."""
    device = {"id": 0, "zone": 0, "device": "disk", "ip": "127.0.0.1", "port": port}
    device.update({"replication_ip": device["ip"], "replication_port": port})
    RingData([array("H", [0] * 4)], [device], 30).save(path)


def serve(listening, app):
    quiet = open(os.devnull, "w")
    wsgi.server(listening, app, log=quiet, protocol=SwiftHttpProtocol, log_output=False, max_size=512)


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


main(sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4])
