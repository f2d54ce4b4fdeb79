"""nginx that serves files from memory, and receives them there."""
import os
import shutil
import socket

from .processes import Failure

CONFIGURATION = """
daemon off;
worker_processes auto;
pid {directory}/nginx.pid;
error_log stderr warn;
{user}
events {{ worker_connections 64; }}
http {{
  access_log off;
  sendfile on;
  tcp_nopush on;
  keepalive_requests 1000000;
  client_max_body_size 0;
  client_body_buffer_size 1m;
  client_body_temp_path {directory}/body;
  proxy_temp_path {directory}/proxy;
  fastcgi_temp_path {directory}/fastcgi;
  uwsgi_temp_path {directory}/uwsgi;
  scgi_temp_path {directory}/scgi;
  server {{
    listen 127.0.0.1:{port};
    root {directory}/files;
    location / {{ dav_methods PUT; }}
  }}
}}
"""


def start(workplace):
    """The port. It is bound here and handed over, so that nobody else can take it meanwhile."""
    binary = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin")
    if not binary:
        raise Failure("nginx is not installed: docker/install-deps bench installs it")
    directory = workplace.new_directory("nginx")
    (directory / "files").mkdir()
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        port = listener.getsockname()[1]
        configuration = directory / "nginx.conf"
        configuration.write_text(CONFIGURATION.format(directory=directory, port=port,
                                                      user="user root;" if os.geteuid() == 0 else ""))
        workplace.start("nginx", [binary, "-p", directory, "-e", "stderr", "-c", configuration],
                        pass_fds=[listener.fileno()], env={**os.environ, "NGINX": f"{listener.fileno()};"})
    return port
