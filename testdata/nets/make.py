#!/usr/bin/env python3
"""Writes the ibsim net files beside it. They are committed; run this again after a change here.

Every cable is written at both ends, each with its speed. Line 2 holds the counts from which the tests choose the sizes
of ibsim's tables. GUIDs are ibsim's own.

`make.py large DIRECTORY` writes two more for the benchmarks, too large to be committed: 2,592 and 11,664 hosts.
"""
import itertools
import os
import sys

SPEED = "4xEDR"


class Net:
    def __init__(self):
        self.nodes = []  # [kind, name, ports, {port: (peer, peer port)}] in the order of the file

    def hca(self, name, ports=1):
        self.nodes.append(["Hca", name, ports, {}])
        return len(self.nodes) - 1

    def switch(self, name, ports):
        self.nodes.append(["Switch", name, ports, {}])
        return len(self.nodes) - 1

    def free(self, node):
        taken = self.nodes[node][3]
        return next(p for p in range(1, self.nodes[node][2] + 1) if p not in taken)

    def cable(self, a, b, pa=None, pb=None):
        pa = pa or self.free(a)
        self.nodes[a][3][pa] = None
        pb = pb or self.free(b)
        assert pb not in self.nodes[b][3], (self.nodes[b][1], pb)
        self.nodes[a][3][pa] = (b, pb)
        self.nodes[b][3][pb] = (a, pa)

    def write(self, path, title):
        switches = [n for n in self.nodes if n[0] == "Switch"]
        hosts = [n for n in self.nodes if n[0] == "Hca"]
        ports = sum(n[2] for n in hosts) + sum(n[2] + 1 for n in switches)
        lids = sum(len(n[3]) for n in hosts) + len(switches)
        cables = sum(len(n[3]) for n in self.nodes) // 2
        with open(path, "w") as f:
            f.write(f"# {title}\n")
            f.write(f"# nodes={len(self.nodes)} switches={len(switches)} ports={ports} lids={lids}"
                    f" hosts={len(hosts)} links={cables}\n\n")
            for kind, name, count, links in self.nodes:
                f.write(f'{kind}\t{count} "{name}"\n')
                for port in sorted(links):
                    peer, peer_port = links[port]
                    f.write(f'[{port}]\t"{self.nodes[peer][1]}"[{peer_port}]\t# lid 0 {SPEED}\n')
                f.write("\n")


def two_switches():
    net = Net()
    hosts = [net.hca(f"H{i}") for i in range(4)]
    a, b = net.switch("S0", 8), net.switch("S1", 8)
    for i, host in enumerate(hosts):
        net.cable(host, (a, b)[i % 2])
    for _ in range(3):
        net.cable(a, b)
    return net


def tree(leaves, per_leaf, spines, parallel):
    """Two levels: every leaf has `parallel` cables to every spine."""
    net = Net()
    hosts = [net.hca(f"H{i}") for i in range(leaves * per_leaf)]
    low = [net.switch(f"L{i}", per_leaf + spines * parallel) for i in range(leaves)]
    high = [net.switch(f"S{i}", leaves * parallel) for i in range(spines)]
    for i, host in enumerate(hosts):
        net.cable(host, low[i // per_leaf])
    for leaf, spine in itertools.product(low, high):
        for _ in range(parallel):
            net.cable(leaf, spine)
    return net


def torus(width, height):
    net = Net()
    hosts = [net.hca(f"H{i}") for i in range(width * height)]
    at = {(x, y): net.switch(f"S{x}_{y}", 5) for y in range(height) for x in range(width)}
    for (x, y), switch in at.items():
        net.cable(switch, at[(x + 1) % width, y], 1, 2)
        net.cable(switch, at[x, (y + 1) % height], 3, 4)
    for host, switch in zip(hosts, at.values()):
        net.cable(host, switch, 1, 5)
    return net


def dual_port():
    """Two-port adapters: on both switches, on one switch with both ports, with one port only, and back to front."""
    net = Net()
    hosts = [net.hca(f"H{i}", 2) for i in range(6)]
    a, b = net.switch("S0", 12), net.switch("S1", 12)
    for host in hosts[:3]:
        net.cable(host, a, 1)
        net.cable(host, b, 2)
    net.cable(hosts[3], a, 1)
    net.cable(hosts[3], a, 2)
    net.cable(hosts[4], b, 2)
    net.cable(hosts[5], b, 1)
    net.cable(hosts[5], a, 2)
    net.cable(a, b)
    net.cable(a, b)
    return net


def tree3(hosts, groups, pods, middles, tops):
    """Three levels: pods of `groups` leaves with `hosts` hosts each and `middles` middle switches; middle m of every pod
    has a cable to each of the `tops` top switches of its own plane."""
    net = Net()
    names = [(p, g, h) for p in range(pods) for g in range(groups) for h in range(hosts)]
    cas = [net.hca(f"H{i}") for i in range(len(names))]
    low = {(p, g): net.switch(f"L{p}_{g}", hosts + middles) for p in range(pods) for g in range(groups)}
    mid = {(p, m): net.switch(f"M{p}_{m}", groups + tops) for p in range(pods) for m in range(middles)}
    top = {(m, t): net.switch(f"T{m}_{t}", pods) for m in range(middles) for t in range(tops)}
    for ca, (p, g, _) in zip(cas, names):
        net.cable(ca, low[p, g], 1, _ + 1)
    for p, g, m in itertools.product(range(pods), range(groups), range(middles)):
        net.cable(low[p, g], mid[p, m], hosts + m + 1, g + 1)
    for p, m, t in itertools.product(range(pods), range(middles), range(tops)):
        net.cable(mid[p, m], top[m, t], groups + t + 1, p + 1)
    return net


if sys.argv[1:2] == ["large"]:
    folder = sys.argv[2]
    tree(72, 36, 36, 1).write(os.path.join(folder, "tree2592.net"), "fat tree of two levels: 2592 hosts")
    tree3(18, 18, 36, 18, 18).write(os.path.join(folder, "tree11664.net"), "fat tree of three levels: 11664 hosts")
    sys.exit()

os.chdir(os.path.dirname(os.path.abspath(__file__)))
two_switches().write("two-switches.net", "two switches joined by three cables, two hosts each")
tree(6, 6, 3, 2).write("tree36.net", "fat tree of two levels: 36 hosts, 6 leaves, 3 spines, two cables between each")
torus(4, 4).write("torus4x4.net", "torus of 4 by 4 switches with one host each")
dual_port().write("dual-port.net", "adapters with two ports on two switches")
tree(36, 18, 18, 1).write("tree648.net", "fat tree of two levels: 648 hosts, 36 leaves, 18 spines")
