"""`hapax work` beside a gateway: a process that only does what is owed to others."""
import os
import subprocess
import threading

from .gateway import Gateway


class WorkProcess(Gateway):
    """With the gateway's configuration, in a folder of its own."""

    def __init__(self, folder, gateway, number, steps=False):
        folder = folder / f"work{number}"
        folder.mkdir()
        super().__init__(folder, gateway.config["upstream"], gateway.config, steps)

    def spawn(self, env=None):
        self.ready = False
        command = [self.program, "work", "--config", self.write_config(), "--admin",
                   f"127.0.0.1:{self.admin_port}"]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, cwd=self.folder,
                                        env={**os.environ, **(env or {})})
        threading.Thread(target=self.read_log, args=(self.process,), daemon=True).start()
        return self
