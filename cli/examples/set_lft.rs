//! Spoils a forwarding table: `set_lft LID PORT HOP...` makes the switch at the directed route HOP... (ports, from our own
//! on) send LID out of PORT. For tests that must see a stock tool fail when a table is wrong.

use std::time::Duration;

use mad::transport::umad::{self, OpenOptions, PortSelector, UmadTransport};
use mad::transport::{Address, Datagram, Received, Transport};
use mad::types::{DirectedPath, PortNum};
use mad::wire::smp::{LinearForwardingTable, Smp};
use mad::wire::{Attribute, Method};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<u16> = std::env::args().skip(1).map(|a| a.parse()).collect::<Result<_, _>>()?;
    let &[lid, port, ref hops @ ..] = arguments.as_slice() else {
        return Err("usage: set_lft LID PORT HOP...".into());
    };
    let mut path = DirectedPath::LOCAL;
    for hop in hops {
        path = path.extend(PortNum(u8::try_from(*hop)?))?;
    }
    let selected = umad::select(&umad::devices()?, &PortSelector::default())?;
    let transport = UmadTransport::open(&selected, &OpenOptions::client())?;
    let (block, place) = (lid / 64, usize::from(lid % 64));
    let ask = |method, data: [u8; 64]| -> Result<[u8; 64], Box<dyn std::error::Error>> {
        let mut smp = Smp::directed(method, LinearForwardingTable::ID, u32::from(block), &path);
        smp.data = data;
        let datagram = Datagram { address: Address::DIRECTED, mad: smp.into_mad() };
        transport.send(&datagram, Some(Duration::from_secs(5)))?;
        match transport.receive(Duration::from_secs(5))? {
            Some(Received::Datagram(reply)) if reply.mad.header.status().is_ok() => {
                Ok(Smp::from_mad(reply.mad).data)
            }
            other => Err(format!("no good answer: {other:?}").into()),
        }
    };
    let mut table = ask(Method::GET, [0; 64])?;
    table[place] = u8::try_from(port)?;
    if ask(Method::SET, table)? != table {
        return Err("the switch did not take it".into());
    }
    Ok(())
}
