//! How long a fabric (a simulator) takes to answer: `flood COUNT WINDOW [PORT]` sends COUNT Gets of NodeInfo to the node
//! behind our port, or with PORT to the one behind that port of it, WINDOW at a time, and prints the seconds. The measure
//! that `benches/bringup.sh` holds the time of a bring-up against.

use std::io::Write;
use std::time::{Duration, Instant};

use mad::transport::umad::{self, OpenOptions, PortSelector, UmadTransport};
use mad::transport::{Address, Datagram, Received, Transport};
use mad::types::{DirectedPath, PortNum};
use mad::wire::smp::{NodeInfo, Smp};
use mad::wire::{Attribute, Method};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<u64> = std::env::args().skip(1).map(|a| a.parse()).collect::<Result<_, _>>()?;
    let (&[count, window] | &[count, window, _]) = arguments.as_slice() else {
        return Err("usage: flood COUNT WINDOW [PORT]".into());
    };
    let selected = umad::select(&umad::devices()?, &PortSelector::default())?;
    let mut path = DirectedPath::LOCAL.extend(selected.port.number)?;
    if let Some(port) = arguments.get(2) {
        path = path.extend(PortNum(u8::try_from(*port)?))?;
    }
    let transport = UmadTransport::open(&selected, &OpenOptions::client())?;
    let send = |number: u64| {
        let smp = Smp::directed(Method::GET, NodeInfo::ID, 0, &path);
        let mut datagram = Datagram { address: Address::DIRECTED, mad: smp.into_mad() };
        datagram.mad.header.transaction_id.set(number + 1);
        transport.send(&datagram, Some(Duration::from_secs(10)))
    };
    let start = Instant::now();
    let mut sent = 0;
    while sent < window.min(count) {
        send(sent)?;
        sent += 1;
    }
    let mut answered = 0;
    while answered < count {
        match transport.receive(Duration::from_secs(10))? {
            Some(Received::Datagram(_)) => answered += 1,
            Some(Received::Returned { errno, .. }) => return Err(format!("came back: error {errno}").into()),
            None => return Err(format!("no answer after {answered} of {count}").into()),
        }
        if sent < count {
            send(sent)?;
            sent += 1;
        }
    }
    writeln!(std::io::stdout(), "{:.6}", start.elapsed().as_secs_f64())?;
    Ok(())
}
